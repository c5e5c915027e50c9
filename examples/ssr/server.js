/** Renders the page on the server, with Vite for the modules: `npm start`. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { createServer as createVite } from "vite";
import { publicKey, url } from "../dev-keys.mjs";

const PORT = Number(process.env.PORT ?? 5174);

const vite = await createVite({
  appType: "custom",
  define: { SVC_URL: JSON.stringify(url), SVC_PUBLIC_KEY: JSON.stringify(publicKey) },
  server: { middlewareMode: true, hmr: false },
});

createServer((request, response) => {
  vite.middlewares(request, response, async () => {
    try {
      // Importing the SDK on a server is safe. Calling `load()` there throws `not_a_browser`; the provider never does.
      const { App } = await vite.ssrLoadModule("/app.jsx");
      const template = await vite.transformIndexHtml(request.url, await readFile("index.html", "utf8"));
      const page = template.replace("<!--app-->", renderToString(createElement(App)));
      response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
    } catch (error) {
      console.error(error);
      response.writeHead(500).end("the page could not be rendered\n");
    }
  });
}).listen(PORT, "127.0.0.1", () => console.log(`http://localhost:${PORT}`));
