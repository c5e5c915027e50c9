/** Every screen of the console by its name in the address, each in a script of its own, which has the screen of a single one, too. */
import type { ComponentType } from "preact";
import { lazy } from "./lazy.js";

export interface Screen {
  title: string;
  /** What it is for; screens of one group stand together. */
  group: "Watch" | "Decide" | "Connect" | "Organization";
  show: ComponentType;
  /** Title and screen of a single one. */
  one?: [title: string, show: ComponentType];
  /** It is reached from other screens, and does not stand in the list of screens. */
  isHidden?: boolean;
}

export const SCREENS: Record<string, Screen> = {
  live: { title: "Live", group: "Watch", show: lazy(async () => (await import("./live.js")).Live) },
  events: {
    title: "Events",
    group: "Watch",
    show: lazy(async () => (await import("./events.js")).Events),
    one: ["Event", lazy(async () => (await import("./events.js")).Event)],
  },
  visitors: {
    title: "Visitors",
    group: "Watch",
    show: lazy(async () => (await import("./visitors.js")).Visitors),
    one: ["Visitor", lazy(async () => (await import("./visitors.js")).Visitor)],
  },
  accounts: {
    title: "Accounts",
    group: "Watch",
    show: lazy(async () => (await import("./visitors.js")).Accounts),
    one: ["Account", lazy(async () => (await import("./visitors.js")).Account)],
  },
  reviews: { title: "Reviews", group: "Watch", show: lazy(async () => (await import("./judging/reviews.js")).Reviews) },
  overview: { title: "Overview", group: "Watch", show: lazy(async () => (await import("./overview.js")).Overview) },
  rules: { title: "Rules", group: "Decide", show: lazy(async () => (await import("./rules/screen.js")).Rules) },
  lists: {
    title: "Lists",
    group: "Decide",
    show: lazy(async () => (await import("./entries/screen.js")).Lists),
    one: ["List", lazy(async () => (await import("./entries/screen.js")).List)],
  },
  performance: { title: "Performance", group: "Decide", show: lazy(async () => (await import("./judging/performance.js")).Performance) },
  weights: { title: "Weights", group: "Decide", show: lazy(async () => (await import("./weights.js")).Weights) },
  keys: { title: "Keys", group: "Connect", show: lazy(async () => (await import("./keys.js")).Keys) },
  webhooks: { title: "Webhooks", group: "Connect", show: lazy(async () => (await import("./webhooks.js")).Webhooks) },
  members: { title: "Members", group: "Organization", show: lazy(async () => (await import("./judging/members.js")).Members) },
  settings: { title: "Settings", group: "Organization", show: lazy(async () => (await import("./settings.js")).Settings) },
  audit: { title: "Audit", group: "Organization", show: lazy(async () => (await import("./audit.js")).Audit) },
  billing: { title: "Billing", group: "Organization", show: lazy(async () => (await import("./billing.js")).Billing) },
  view: { title: "View", group: "Watch", show: lazy(async () => (await import("./saved.js")).OneView), isHidden: true },
  search: { title: "Search", group: "Watch", show: lazy(async () => (await import("./search.js")).Search), isHidden: true },
};

/** The groups in their order, with the screens that stand in the list. */
export const GROUPS: [name: string, screens: [name: string, screen: Screen][]][] = (["Watch", "Decide", "Connect", "Organization"] as const).map((group) => [
  group,
  Object.entries(SCREENS).filter(([, screen]) => screen.group === group && !screen.isHidden),
]);
