import { publicKey, secretKey, url } from "../dev-keys.mjs";

// A project of your own sets these where it runs. Only what a component passes on reaches the browser.
Object.assign(process.env, { SVC_URL: url, SVC_PUBLIC_KEY: publicKey, SVC_SECRET_KEY: secretKey() });

export default {};
