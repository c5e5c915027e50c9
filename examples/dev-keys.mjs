/**
 * Where the service is and the keys of `svc dev`: from the environment, else from data/dev-keys.json of this checkout,
 * which `make run` writes. A project of your own uses environment variables alone.
 */
import { readFileSync } from "node:fs";

const FILE = process.env.SVC_DEV_KEYS ?? new URL("../data/dev-keys.json", import.meta.url);

export const url = process.env.SVC_URL ?? "http://127.0.0.1:8080";
export const publicKey = process.env.SVC_PUBLIC_KEY ?? kept("public");

function kept(kind) {
  try {
    return JSON.parse(readFileSync(FILE, "utf8"))[kind];
  } catch {
    throw new Error(`No key: start the service with "make run" in the checkout first, or set SVC_URL and SVC_PUBLIC_KEY.`);
  }
}
