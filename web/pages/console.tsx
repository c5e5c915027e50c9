/** The console: sign in, and look at what the service does. One screen for each place in the address. */
/** @jsxImportSource preact */
import { render } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Api, ApiError } from "./console/api.js";
import { wanted } from "./console/filters.js";
import { zone } from "./console/format.js";
import { INVITATION, type Place, read, refusalIn, tokenIn, write } from "./console/hash.js";
import type { Invitation as InvitationScreen, Link as LinkScreen } from "./console/invitation.js";
import { lazy } from "./console/lazy.js";
import { AccountMenu } from "./console/menu.js";
import { GROUPS, SCREENS } from "./console/screens.js";
import type { Credentials, SignIn as SignInScreen } from "./console/signin.js";
import { kept, nameOf, ownerOf, Shared } from "./console/state.js";
import { Choice } from "./console/ui.js";
import type { Key, Session, SignInOptions } from "./console/wire.js";
import { NO_TEXTS, texts as readTexts, type Texts } from "./parts/wire.js";

const SignIn = lazy<Parameters<typeof SignInScreen>[0]>(async () => (await import("./console/signin.js")).SignIn);
const Invitation = lazy<Parameters<typeof InvitationScreen>[0]>(async () => (await import("./console/invitation.js")).Invitation);
const Link = lazy<Parameters<typeof LinkScreen>[0]>(async () => (await import("./console/invitation.js")).Link);
const ENVIRONMENTS = ["production", "staging", "development"];
const NOTICE_MS = 8000;
const RESUME_MS = 3000;
/** All tabs of a browser have one session: the tab that begins one says so to the others. */
const CHANNEL = "svc console session";

/** How far down a screen was left, and the address of the link that led away. */
type Left = [top: number, link: string | null | undefined];
/** By address: Back and Forward go on there. */
const lefts = new Map<string, Left>();
let returned: Left | undefined;
history.scrollRestoration = "manual";

/** Notes where the screen of `before` was left, and whether the present one is in the history already, each of whose places has a state. */
function wayBack(before: string): void {
  lefts.set(before, [scrollY, document.querySelector("main :focus")?.getAttribute("href")]);
  returned = history.state ? lefts.get(location.href) : undefined;
  if (!returned) kept.delete(location.hash);
  history.replaceState(1, "");
}

/** Goes there as soon as it is there, unless somebody acts meanwhile. */
function resume(top: number, link: string | null | undefined) {
  const end = Date.now() + RESUME_MS, focused = document.activeElement;
  let at = scrollY, frame = 0;
  const look = () => {
    if (scrollY !== at || document.activeElement !== focused) return;
    scrollTo(0, top);
    at = scrollY;
    const there = at > top - 1, links = link ? [...document.querySelectorAll<HTMLElement>(`main a[href="${CSS.escape(link)}"]`)] : [];
    // Several rows may lead to the same place.
    const found = links.find((one) => one.getBoundingClientRect().top > 0) ?? links[0];
    if (found) found.focus({ preventScroll: there });
    else if (Date.now() < end && (link || !there)) frame = requestAnimationFrame(look);
  };
  look();
  return () => cancelAnimationFrame(frame);
}

interface Signed {
  session: Session;
  /** To be said on arrival. */
  said?: string;
  texts: Texts;
  /** Where no address names one. */
  environment: string;
}

type State =
  | { is: "starting" }
  /** `again` where nothing says that there is no session. */
  | { is: "out"; reason?: string; again?: boolean }
  /** A link was opened in a browser that has a session. */
  | { is: "asking"; session: Session; token: string }
  /** An invitation was opened; `session` is the one that the browser has. */
  | { is: "invited"; session: Session | undefined; token: string }
  | ({ is: "in" } & Signed);

/** The environment to begin with: where the organization has keys, production first. */
async function environmentOf(api: Api): Promise<string> {
  const { keys } = await api.manage<{ keys: Key[] }>("GET", "sdk-keys");
  const used = keys.filter((key) => key.status === "active").map((key) => key.environment);
  return ENVIRONMENTS.find((one) => used.includes(one)) ?? "production";
}

function Root() {
  const [state, setState] = useState<State>({ is: "starting" });
  const [place, setPlace] = useState<Place>(read(location.hash));
  const api = useMemo(() => new Api((reason) => setState({ is: "out", reason })), []);

  const others = useMemo(() => new BroadcastChannel(CHANNEL), []);
  const now = useRef(state);
  now.current = state;

  const enter = async (session: Session, said?: string) => {
    api.organization = session.organization.id;
    api.sessions += 1;
    const [texts, environment] = await Promise.all([readTexts().catch(() => NO_TEXTS), environmentOf(api)]);
    setState({ is: "in", session, texts, environment, ...(said && { said }) });
  };
  /** The session that this browser has, if any. */
  const current = () =>
    api.get<Session>("session").catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 401) return undefined;
      throw error;
    });
  /** A role that an admin has changed meanwhile is that of the screen, too: looked at when somebody comes back to it, and after a refusal. */
  api.onRole = () => void (now.current.is === "in" && current().then((session) => {
    const { current: before } = now;
    if (session && before.is === "in" && ownerOf(session) === ownerOf(before.session) && session.role !== before.session.role) setState({ ...before, session });
  }).catch(() => {}));
  const exchange = async (body: { token: string; password?: string } | Credentials, path = "session") => {
    const session = await api.call<Session>("POST", path, { body });
    others.postMessage(session);
    await enter(session);
  };
  /** Any site can lead here with a token of its own, so a token never replaces a session by itself. */
  const start = async (said?: string) => {
    const token = tokenIn(location.hash);
    const refusal = refusalIn(location.hash);
    if (token !== undefined || refusal !== undefined) history.replaceState(null, "", location.pathname + location.search);
    setPlace(read(location.hash));
    try {
      const session = await current();
      if (token?.startsWith(INVITATION)) return setState({ is: "invited", session, token });
      if (session !== undefined && token !== undefined) return setState({ is: "asking", session, token });
      if (session !== undefined) return await enter(session, said);
      // Without a session there is nothing to explain: that is how everyone arrives.
      if (token === undefined) return setState({ is: "out", ...(refusal && { reason: refusal }) });
      await exchange({ token });
    } catch (error) {
      const again = token === undefined && !(error instanceof ApiError && error.status === 401);
      setState({ is: "out", reason: error instanceof Error ? error.message : String(error), again });
    }
  };
  useEffect(() => {
    void start();
    const moved = ({ oldURL }: HashChangeEvent) => {
      wayBack(oldURL);
      if (tokenIn(location.hash) !== undefined || refusalIn(location.hash) !== undefined) void start();
      else setPlace(read(location.hash));
    };
    // Else this one would show what belongs to the other session under the name of its own organization.
    others.onmessage = ({ data: session }: MessageEvent<Session>) => {
      const before = now.current;
      if (before.is === "asking" || before.is === "invited" || (before.is === "in" && before.session.organization.id === session.organization.id && ownerOf(before.session) === ownerOf(session))) return;
      setState({ is: "starting" });
      void start(`Another tab has signed in to ${session.organization.name} as ${nameOf(session)}.`);
    };
    history.replaceState(1, "");
    addEventListener("hashchange", moved);
    addEventListener("focus", () => api.onRole());
    return () => {
      removeEventListener("hashchange", moved);
      others.close();
    };
  }, []);

  if (state.is === "starting") return <main class="signin"><p class="quiet" role="status">Loading …</p></main>;
  if (state.is === "out") return <SignIn reason={state.reason} onRetry={state.again ? () => start() : undefined} onSignIn={exchange} options={() => api.get<SignInOptions>("sign-in")} />;
  if (state.is === "invited") {
    const { session, token } = state;
    return <Invitation key={token} session={session} read={() => api.call("POST", "invitations/read", { body: { token } })} onAccept={(password) => exchange({ token, password }, "invitations")} onLeave={() => start()} />;
  }
  if (state.is === "asking") {
    const { session, token } = state;
    return <Link key={token} session={session} onStay={() => start()} onUse={() => exchange({ token })} />;
  }
  const leave = async () => {
    await api.call("DELETE", "session");
    setState({ is: "out", reason: "You have signed out." });
  };
  return <Signed api={api} signed={state} place={place} onLeave={leave} />;
}

/** The list of screens scrolls sideways on a narrow screen. */
function intoView(link: HTMLElement | null): void {
  link?.scrollIntoView({ block: "nearest", inline: "center" });
}

/** Whether a key that was pressed is one of a text or a dialog. */
function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || ["INPUT", "SELECT", "TEXTAREA"].includes(target.tagName) || document.querySelector("dialog[open]") !== null);
}

function Signed({ api, signed, place, onLeave }: { api: Api; signed: Signed; place: Place; onLeave: () => Promise<void> }) {
  const [notice, setNotice] = useState(signed.said ?? "");
  const heading = useRef<HTMLHeadingElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const arrived = useRef(false);
  const { session, texts } = signed;
  const asked = place.query.environment ?? "";
  const environment = ENVIRONMENTS.includes(asked) ? asked : signed.environment;
  const screen = SCREENS[place.screen];
  const [title, Show] = (place.id && screen?.one) || [screen?.title ?? "Nothing here", screen?.show];
  const shared = useMemo(() => ({ api, session, texts, place, environment, notify: setNotice }), [api, session, texts, place, environment]);

  useLayoutEffect(() => {
    document.title = `${title} · ${session.organization.name} · svc`;
    if (arrived.current) heading.current?.focus();
    arrived.current = true;
    scrollTo(0, 0);
    return returned && resume(...returned);
  }, [place.screen, place.id]);
  useEffect(() => {
    const timer = setTimeout(() => setNotice(""), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [notice]);

  const go = (chosen: string) => {
    location.hash = write(place.screen, place.id, { ...place.query, environment: chosen });
  };
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const [to, id, query] = wanted(String(new FormData(form).get("wanted")));
    location.hash = write(to, id, { environment, ...query });
    form.reset();
  };
  useEffect(() => {
    const look = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      event.preventDefault();
      search.current?.focus();
    };
    addEventListener("keydown", look);
    return () => removeEventListener("keydown", look);
  }, []);
  const skip = (event: MouseEvent) => {
    event.preventDefault();
    heading.current?.focus();
  };
  return (
    <Shared.Provider value={shared}>
      <a class="skip" href="#main" onClick={skip}>Skip to the content</a>
      <header class="top">
        <span class="name">svc <span class="quiet">{session.organization.name}</span></span>
        <form role="search" class="find" onSubmit={find}>
          <input ref={search} type="search" name="wanted" required maxLength={1024} autocomplete="off" spellcheck={false} aria-keyshortcuts="/" aria-label="Find an event, visitor, account, address, network or tag" placeholder="Find anything ( / )" />
        </form>
        <label class="environment"><span class="quiet">Environment</span> <Choice value={environment} options={ENVIRONMENTS} onPick={go} /></label>
        <span class="zone quiet" title="Times are shown in this time zone">{zone()}</span>
        <a href="docs/">Documentation</a>
        <AccountMenu onLeave={onLeave} />
      </header>
      <div class="body">
        <nav aria-label="Screens">
          <ul>{GROUPS.map(([group, screens]) => (
            <li key={group}><span class="group">{group}</span>
              <ul>{screens.map(([name, one]) => (
                <li key={name}><a href={write(name, "", { environment })} aria-current={name === place.screen ? "page" : undefined} ref={name === place.screen ? intoView : null}>{one.title}</a></li>
              ))}</ul>
            </li>
          ))}</ul>
        </nav>
        <main id="main">
          <h1 ref={heading} tabIndex={-1}>{title}</h1>
          {Show ? <Show key={`${place.screen}/${place.id}`} /> : <p>There is no such screen. Choose one from the list.</p>}
        </main>
      </div>
      <p class={`notice ${notice && "shown"}`} role="status">{notice}</p>
    </Shared.Provider>
  );
}

const element = document.getElementById("page");
if (element !== null) render(<Root />, element);
