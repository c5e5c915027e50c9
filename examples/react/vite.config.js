import { defineConfig } from "vite";
import { publicKey, url } from "../dev-keys.mjs";
import { shop } from "./shop.js";

export default defineConfig({
  plugins: [shop],
  // A public key may be in the bundle: it works from the origins in its list alone.
  define: { SVC_URL: JSON.stringify(url), SVC_PUBLIC_KEY: JSON.stringify(publicKey) },
  server: { port: Number(process.env.PORT ?? 5173), strictPort: true },
});
