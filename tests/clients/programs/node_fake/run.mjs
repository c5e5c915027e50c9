// Runs cases of testing.json, which come in standard input: what the clients saw, and each answer of the fakes.

import { readFileSync } from "node:fs";
import { verifyWebhook } from "@svc/client";
import { FakeService } from "@svc/client/testing";

const camel = (fields) => Object.fromEntries(
  Object.entries(fields).map(([name, value]) => [name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase()), value]),
);
const answers = [];

async function run({ defaults, steps }) {
  const fake = new FakeService(defaults), told = [];
  const seen = async (url, init) => {
    const response = await fake.fetch(url, init);
    const text = await response.clone().text();
    answers.push([fake.calls.at(-1).operation, response.status, text === "" ? null : JSON.parse(text)]);
    return response;
  };
  const keys = { management: fake.managementKey, nobody: "nobody" };
  const clientOf = (key) => fake.client({ fetch: seen, ...(key === undefined ? {} : { apiKey: keys[key] }) });
  let client = clientOf();
  const concluded = ({ problem, decision, reasons }) => ({ problem, decision, reasons });
  const label = (event) => [event.request_id, event.label ?? null, event.label_reason ?? null];
  const does = {
    visitor: ({ name, fields }) => fake.visitor(name, fields),
    answer: ({ id, fields }) => fake.answer(id, fields),
    client: ({ key }) => void (client = clientOf(key)),
    fail: ({ status, ...more }) => fake.fail(status, camel(more)),
    time_out: (times) => fake.timeOut(times),
    disconnect: (times) => fake.disconnect(times),
    recover: () => fake.recover(),
    respond: ({ operation, body }) => fake.respond(operation, body),
    calls: () => fake.calls.map(({ operation, status }) => [operation, status]),
    check: async ({ id, action, is_first }) => concluded(await client.check(id, { ...camel(action), isFirstUse: () => is_first })),
    check_verdict: async ({ id, expected, is_first }) => {
      const given = { organizationId: fake.organizationId, environment: "production", ...camel(expected), isFirstUse: () => is_first };
      return concluded(await client.checkVerdict(fake.verdict(id), given));
    },
    check_forged: async ({ id }) => {
      const other = new FakeService();
      other.answer(id);
      const given = { organizationId: fake.organizationId, environment: "production", origin: null, tag: null, isFirstUse: () => true };
      return concluded(await client.checkVerdict(other.verdict(id), given));
    },
    get_event: async ({ id, fields }) => {
      const event = await client.getEvent(id);
      return Object.fromEntries(fields.map((name) => [name, event[name] ?? null]));
    },
    update_event: async ({ id, change }) => {
      const event = await client.updateEvent(id, change);
      return [event.request_id, event.account_id ?? null, event.label ?? null, event.label_reason ?? null];
    },
    label_event: async ({ id, do: _, ...body }) => label(await client.labelEvent(fake.organizationId, id, body)),
    get_management_key: async () => ((await client.getManagementKey()).organization_id === fake.organizationId ? "organization" : ""),
    get_visitor: async ({ visitor_id }) => client.getVisitor(visitor_id),
    get_health: async () => (await client.getHealth()).status,
    get_readiness: async () => (await client.getReadiness()).status,
    identify: async ({ key, idempotency_key, do: _, ...about }) => {
      const body = { sdk: { platform: "web" }, signals: {}, ...about };
      const made = await clientOf(key).identify(body, { visitorIp: "203.0.113.7", idempotencyKey: idempotency_key });
      return made.duplicate === true ? "duplicate" : [made.visitor_id, made.visitor_is_new, made.suspect_level];
    },
    list_events: async ({ query, fields }) => {
      const { rows } = await client.listEvents(query);
      return rows.map((row) => (fields === undefined ? row.request_id : fields.map((name) => row[name] ?? null)));
    },
    iterate_events: async ({ query }) => {
      const ids = [];
      for await (const row of client.iterateEvents(query)) ids.push(row.request_id);
      return ids;
    },
    iterate_feed: async ({ query }) => {
      const pages = [];
      for await (const page of client.iterateFeed(query, { follow: false })) pages.push(page.rows.map((row) => row.request_id));
      return pages;
    },
    list_changes: async () => {
      const { changes } = await client.listChanges();
      return changes.map(({ type, request_id }) => [type, request_id]);
    },
    webhook: ({ id, secrets, type }) => {
      const { body, headers } = fake.webhook({ ...(type === undefined ? {} : { type }), data: fake.event(id) }, "a");
      const event = verifyWebhook(body, headers, secrets);
      return [event.type, event.data.tag];
    },
  };
  for (const step of steps) {
    try {
      told.push((await does[step.do](step)) ?? null);
    } catch (error) {
      if (error.name === "ApiError") {
        const { status, code, details, retryAfterS = null } = error;
        told.push({ error: { status, code, retry_after_s: retryAfterS, details } });
      } else if (error.name === "UnreachableError") told.push({ unreachable: error.wasSent });
      else if (error.name === "WebhookError") told.push("not authentic");
      else told.push({ mistake: error.constructor === TypeError || error.message.startsWith("say what ") || String(error) });
    }
  }
  return told;
}

const told = [];
for (const { given } of JSON.parse(readFileSync(0, "utf8"))) told.push(await run(given));
console.log(JSON.stringify({ told, answers }));
