/** The decision of an event: the rule that made it, why, term by term, and what other rules would have said. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import type { Explained } from "../parts/wire.js";
import { literal } from "./format.js";
import { useConsole, useLink, useLoad } from "./state.js";
import { Button, Card, Decided, Show, Time } from "./ui.js";
import type { EventRules, Term } from "./wire.js";

type Rule = EventRules["rules"][number];

export function Decision({ event }: { event: Explained }) {
  const { api } = useConsole();
  const link = useLink();
  const [asked, ask] = useState("");
  const loaded = useLoad((signal) => api.get<EventRules>(`events/${event.request_id}/rules`, { rule_id: asked }, signal), [event.request_id, asked]);
  return (
    <Card title="Decision" actions={<a href={link("rules")}>Rules</a>}>
      <Show of={loaded}>{(found) => <Shown event={event} found={found} onAsk={ask} />}</Show>
    </Card>
  );
}

function Shown({ event, found, onAsk }: { event: Explained; found: EventRules; onAsk: (id: string) => void }) {
  const link = useLink();
  const { decision } = event;
  const decided = found.rules.find((rule) => rule.rule_id === decision?.rule_id);
  const others = found.rules.filter((rule) => rule !== decided);
  const matching = others.filter((rule) => rule.matches === true);
  const failed = others.filter((rule) => rule.matches === null);
  const rest = others.filter((rule) => rule.matches === false);
  return (
    <>
      <p>{decision
        ? <><Decided decision={decision} /> by the rule <a href={link("events", "", { rule: decision.rule_id, window: "30d" })}>{decision.rule}</a>.</>
        : "No rule matched, so there is no decision."}</p>
      {found.revision === undefined && <p class="quiet">The rules of that time are no longer kept.</p>}
      {decided && <Why rule={decided} />}
      {decided && decided.matches !== true && <p class="note">It would not match now: a list that it names has changed since.</p>}
      {matching.length > 0 && <><h3>Would also have matched</h3>{matching.map((rule) => <Other key={rule.rule_id} rule={rule} />)}</>}
      {failed.length > 0 && <><h3>Could not be evaluated</h3>{failed.map((rule) => <Asked key={rule.rule_id} rule={rule} onAsk={onAsk} />)}</>}
      {rest.length > 0 && (
        <details>
          <summary>{rest.length === 1 ? "One rule did not match" : `${rest.length} rules did not match`}</summary>
          {rest.map((rule) => <Asked key={rule.rule_id} rule={rule} onAsk={onAsk} />)}
        </details>
      )}
      {found.revision !== undefined && (
        <p class="quiet">By revision {found.revision} of the rules{found.saved_at && <>, saved <Time at={found.saved_at} /></>}{!found.is_in_force && ", which has been replaced since"}. Lists are read as they are now.</p>
      )}
    </>
  );
}

const MODES = { active: "below the rule that decided", shadow: "in shadow mode", off: "turned off" };

const Other = ({ rule }: { rule: Rule }) => (
  <>
    <p><Decided decision={{ action: rule.action }} /> <strong>{rule.name}</strong> <span class="quiet">{MODES[rule.mode]}</span></p>
    <Why rule={rule} />
  </>
);

function Asked({ rule, onAsk }: { rule: Rule; onAsk: (id: string) => void }) {
  return (
    <>
      <p><strong>{rule.name}</strong> <span class="quiet">{rule.action}{rule.mode !== "active" && `, ${MODES[rule.mode]}`}</span>{!rule.terms && <> <Button kind="small" name={`Why ${rule.name} did not match`} onClick={() => onAsk(rule.rule_id)}>Why?</Button></>}</p>
      <Why rule={rule} />
    </>
  );
}

const RESULTS: [boolean | null, word: string][] = [[true, "yes"], [false, "no"], [null, "unknown"]];
const PARTS = { all: "All of these:", any: "Any of these:", not: "Not:" };

/** The terms of a rule, each below the one that it is a part of. */
function Why({ rule }: { rule: Rule }) {
  if (!rule.terms) return null;
  return (
    <ul class="terms" aria-label={`Why ${rule.name}`}>
      {rule.terms.map((term, at) => {
        const [, word] = RESULTS.find(([result]) => result === term.result)!;
        return (
          <li key={at} class={`term ${term.result === true ? "true" : term.result === false ? "false" : "unknown"}`} style={{ "--depth": String(term.depth) }}>
            <span class="answer">{word}</span> {term.kind === "term" ? <Leaf term={term} /> : <span class="quiet">{PARTS[term.kind]}</span>}
          </li>
        );
      })}
    </ul>
  );
}

/** What a term compares, where its text does not say it: the 7 of `velocity.visitor.accounts["30d"] >= 5`. */
export function compared({ operator, left, right, result }: Term): string {
  if (operator === "==" && result) return "";
  return [left, right].flatMap((side) => (side?.value === side?.text ? [] : side?.value ?? [])).join(` ${operator} `);
}

function Leaf({ term }: { term: Term }) {
  const { operator, left, right, text } = term;
  const here = compared(term);
  return (
    <>
      <code>{literal(operator ? `${left?.text} ${operator} ${right?.text}` : text)}</code>{here && <> here <strong>{here}</strong></>}
      {term.absent && <span class="quiet"> {term.absent.join(", ")} {term.absent.length === 1 ? "has" : "have"} no value</span>}
    </>
  );
}
