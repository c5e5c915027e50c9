/** A service over real HTTP that does as the test says, request by request. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { expect, vi } from "vitest";

export interface Received {
  path: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
}

/** What to do with one request: respond by status and JSON, or anything else with the response itself. */
export type Step =
  { status: number; body?: unknown; headers?: Record<string, string> } | ((response: ServerResponse) => void);

export const REQUEST_ID = "01a2042b-19c8-7634-acc2-3c7222649719";
export const IDENTIFIED = {
  status: 200,
  body: { request_id: REQUEST_ID, visitor_id: "lW3DvNunzmoofQrBqNAw", visitor_is_new: true },
};
export const UNAVAILABLE = refusal(503, "service_unavailable");

export function refusal(status: number, code: string, headers: Record<string, string> = {}): Step {
  return {
    status,
    body: { error: { code, message: `said by the service: ${code}`, status }, request_id: REQUEST_ID },
    headers,
  };
}

export class Server {
  readonly received: Received[] = [];
  private readonly http = createServer((request, response) => void this.respond(request, response));
  private steps: Step[] = [];

  /** Does these steps one after the other, and the last one for ever. */
  static async start(...steps: Step[]): Promise<Server> {
    const server = new Server();
    server.steps = steps;
    await new Promise<void>((resolve) => server.http.listen(0, "127.0.0.1", resolve));
    return server;
  }

  /** Resolves when so many requests have arrived. */
  async until(arrived: number): Promise<void> {
    await vi.waitFor(() => expect(this.received).toHaveLength(arrived), { timeout: 20_000 });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.http.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.http.closeAllConnections();
    await new Promise((resolve) => this.http.close(resolve));
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const cors = {
      "access-control-allow-origin": "*",
      "access-control-allow-headers": "x-api-key, idempotency-key, content-type, content-encoding, x-svc-replay",
      "access-control-expose-headers": "Retry-After, X-Request-Id",
    };
    if (request.method === "OPTIONS") {
      response.writeHead(204, cors).end();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const raw = Buffer.concat(chunks);
    const text = request.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw;
    this.received.push({
      path: request.url ?? "",
      headers: request.headers,
      body: JSON.parse(text.toString()) as Record<string, unknown>,
    });
    const step = this.steps.length > 1 ? this.steps.shift() : this.steps[0];
    if (step === undefined) throw new Error("the server has nothing to do");
    if (typeof step === "function") return step(response);
    response.writeHead(step.status, { "content-type": "application/json", ...cors, ...step.headers });
    response.end(typeof step.body === "string" ? step.body : JSON.stringify(step.body));
  }
}
