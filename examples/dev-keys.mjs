/**
 * Where the service is and the keys of `svc dev`: from the environment, else from data/dev-keys.json of this checkout,
 * which `make run` writes. A project of your own uses environment variables alone.
 */
import { readFileSync } from "node:fs";

const FILE = process.env.SVC_DEV_KEYS ?? new URL("../data/dev-keys.json", import.meta.url);

export const url = process.env.SVC_URL ?? kept("url");
export const publicKey = process.env.SVC_PUBLIC_KEY ?? kept("public");
/** For servers. */
export const secretKey = () => process.env.SVC_SECRET_KEY ?? kept("secret");

function kept(name) {
  let found = {};
  try {
    found = JSON.parse(readFileSync(FILE, "utf8"));
  } catch {}
  if (found[name]) return found[name];
  throw new Error(`No key: start the service with "make run" in the checkout first, or set SVC_URL, SVC_PUBLIC_KEY and SVC_SECRET_KEY.`);
}
