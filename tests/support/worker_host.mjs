// Runs a Cloudflare worker's `fetch` behind an HTTPS server of node: node worker_host.mjs WORKER PORT CERTIFICATE KEY.
// As Cloudflare does, it says in `cf-connecting-ip` where the connection is from, whatever the client sent.
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { pathToFileURL } from "node:url";

const [worker, port, certificate, key] = process.argv.slice(2);
const { default: handler } = await import(pathToFileURL(worker));

createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, async (incoming, outgoing) => {
  const chunks = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const headers = new Headers(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]));
  headers.set("cf-connecting-ip", incoming.socket.remoteAddress);
  const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined;
  const url = `https://${incoming.headers.host}${incoming.url}`;
  const response = await handler.fetch(new Request(url, { method: incoming.method, headers, body }), process.env);
  const sent = Object.fromEntries([...response.headers].filter(([name]) => !/^(content-encoding|content-length|transfer-encoding|connection|keep-alive)$/.test(name)));
  outgoing.writeHead(response.status, sent);
  outgoing.end(Buffer.from(await response.arrayBuffer()));
}).listen(Number(port), "127.0.0.1");
