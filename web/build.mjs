/**
 * Builds the SDK and the pages into svc/web_static, and the packages into their dist. Fails over a size budget; `--sizes` prints
 * all of them.
 */
import { build } from "esbuild";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUTPUT = join(HERE, "..", "svc", "web_static");
const { version } = JSON.parse(readFileSync(join(HERE, "sdk", "package.json"), "utf8"));

/** Bytes after gzip; of a page all of its files together, whenever it loads them. */
const BUDGETS = {
  "sdk/svc.js": 25_500,
  "sdk/svc.esm.js": 25_500,
  "sdk/svc.worker.js": 1_000,
  "pages/try": 14_000,
  "pages/console": 101_000,
};
/** Bytes after gzip of all that the console has loaded when its first screen is there. */
const FIRST_SCREEN = 45_000;
/** Pages that are built in parts, each of which is loaded when it is needed, and what the first screen needs of them. */
const IN_PARTS = { "console.tsx": "console/live.tsx" };

/** Sources of FingerprintJS that the service never compares, or whose facts our own probes hold in full: cut out of the bundle. */
const LEFT_OUT = ["domBlockers", "audioBaseLatency", "privateClickMeasurement", "dateTimeLocale", "userAgentData"];

/** Loads files whose path matches with each of `changes` made once: [what stands there, what stands there instead], after `before`. */
const changed = (name, filter, changes, before = "") => ({
  name,
  setup({ onLoad }) {
    onLoad({ filter }, ({ path }) => {
      const contents = changes.reduce(
        (text, [from, to]) => {
          const found = text.match(from);
          if (found?.length !== 1) throw new Error(`${path} has no ${from}, or several: look at its new version`);
          return text.replace(found[0], to);
        },
        readFileSync(path, "utf8"),
      );
      return { contents: before + contents, loader: "js" };
    });
  },
});

/** Both libraries count by `reduce`, which Prototype 1.6 replaces on every list by something else. */
const COUNTED = [/values\.reduce\(\(sum, value\) => sum \+ \(value \? 1 : 0\), 0\)/g, "values.filter(Boolean).length"];

/** Pages that demand Trusted Types refuse a plain text here. */
const TRUSTED = [/iframe\.srcdoc = initialHtml/g, "iframe.srcdoc = trustedHtml(initialHtml)"];
const IMPORTS_TRUSTED = `import { trustedHtml } from ${JSON.stringify(join(HERE, "sdk/src/trusted.ts"))};\n`;

const ofFingerprintjs = changed(
  "of-fingerprintjs",
  /fingerprintjs[\\/]dist[\\/]fp\.esm\.js$/,
  [...LEFT_OUT.map((name) => [new RegExp(`^    ${name}: \\w+,\\n`, "gm"), ""]), COUNTED, TRUSTED],
  IMPORTS_TRUSTED,
);
const withoutReduce = changed("without-reduce", /botd[\\/]dist[\\/]botd\.esm\.js$/, [COUNTED]);

/** Pages load the SDK as any page does: from where it is served, relative to their own scripts in /pages. */
const servedSdk = {
  name: "served-sdk",
  setup({ onResolve }) {
    onResolve({ filter: /^@svc\/web$/ }, () => ({ path: "../sdk/v1/svc.esm.js", external: true }));
  },
};

/** ASCII: a classic script is read in the encoding of its page, which need not be UTF-8. */
const common = {
  bundle: true,
  minify: true,
  target: ["es2020"],
  legalComments: "none",
  charset: "ascii",
  write: false,
  metafile: true,
  plugins: [ofFingerprintjs, withoutReduce],
};

/** esbuild's single output as text, and the names of the packages in it. */
async function bundled(entry, options) {
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: [join(HERE, entry)],
    absWorkingDir: HERE,
    ...options,
  });
  return { text: outputFiles[0].text, packages: packagesOf(metafile) };
}

const packagesOf = ({ inputs }) =>
  new Set(Object.keys(inputs).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]).filter(Boolean));

/**
 * The script of a page and its parts by file name, each named by its content, so that no page mixes two versions; and the names of
 * those that are loaded before `first` is shown.
 */
async function inParts(name, first, options) {
  const { outputFiles, metafile } = await build({
    ...common,
    entryPoints: [join(HERE, "pages", name)],
    absWorkingDir: HERE,
    outdir: HERE,
    format: "esm",
    splitting: true,
    chunkNames: `${basename(name, extname(name))}.[name]-[hash]`,
    ...options,
  });
  const files = Object.fromEntries(outputFiles.map(({ path, text }) => [basename(path), text]));
  const begun = Object.entries(metafile.outputs).filter(([, { entryPoint }]) => [`pages/${name}`, `pages/${first}`].includes(entryPoint));
  const loaded = new Set(begun.map(([path]) => path));
  for (const path of loaded) {
    for (const one of metafile.outputs[path].imports) if (one.kind === "import-statement" && !one.external) loaded.add(one.path);
  }
  return { files, packages: packagesOf(metafile), loaded: [...loaded].map((path) => basename(path)) };
}

/** Types of the SDK in one file: those of the API, and the names that the entry adds. */
function declarations() {
  const folder = mkdtempSync(join(HERE, "node_modules", ".declarations-"));
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const options = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--outDir", folder];
  execFileSync(process.execPath, [tsc, "-p", join(HERE, "tsconfig.json"), ...options], { stdio: "inherit" });
  const read = (path) => readFileSync(join(folder, path), "utf8");
  const entry = read("sdk/src/index.d.ts").replace(/^(?:import|export \*) .*\n/gm, "");
  const found = { sdk: read("sdk/src/api.d.ts") + entry };
  for (const name of ["react", "vue", "svelte"]) found[name] = read(`${name}/src/index.d.ts`);
  rmSync(folder, { recursive: true });
  return found;
}

/** The licenses of the packages that are part of the output, in full, after a line that names our own part. */
function licenses(own, packages) {
  const parts = [...packages].sort().map((name) => {
    const folder = join(HERE, "node_modules", name);
    const described = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
    if (!file) throw new Error(`${name} has no license file`);
    return `${name} ${described.version} (${described.license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
  });
  return [own, ...parts].join(`\n${"-".repeat(78)}\n\n`);
}

async function sdk() {
  const defined = { SDK_VERSION: JSON.stringify(version) };
  const worker = await bundled("sdk/src/worker.ts", { format: "iife" });
  const define = { ...defined, WORKER_SCRIPT: JSON.stringify(worker.text.trim()) };
  const esm = await bundled("sdk/src/index.ts", { format: "esm", define });
  const everywhere = await bundled("sdk/src/index.ts", {
    format: "iife",
    globalName: "svc",
    define: { ...define, "import.meta.url": "undefined" },
  });
  return {
    "svc.js": everywhere.text,
    "svc.esm.js": esm.text,
    "svc.worker.js": worker.text,
    "version.txt": `${version}\n`,
    "LICENSES.txt": licenses(
      "svc.js, svc.esm.js and svc.worker.js are part of svc (Apache-2.0) and contain:\n",
      new Set([...esm.packages, ...worker.packages]),
    ),
  };
}

/**
 * Every script and style of web/pages that lies at the top, bundled; every other file of the top, as it is. And the names of those
 * that a page in parts has loaded when its first screen is there.
 */
async function pages() {
  const folder = join(HERE, "pages");
  const files = {};
  const packages = new Set();
  const first = [];
  if (!existsSync(folder)) return { files, first };
  for (const { name } of readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())) {
    const kind = extname(name);
    if (kind === ".md" || name.endsWith(".d.ts")) continue;
    const options = { jsx: "automatic", plugins: [servedSdk] };
    if (name in IN_PARTS) {
      const page = basename(name, kind);
      const made = await inParts(name, IN_PARTS[name], options);
      Object.assign(files, made.files);
      first.push(`${page}.html`, `${page}.css`, ...made.loaded);
      for (const used of made.packages) packages.add(used);
    } else if (kind === ".ts" || kind === ".tsx") {
      const made = await bundled(`pages/${name}`, { ...options, format: "esm" });
      files[`${basename(name, kind)}.js`] = made.text;
      for (const used of made.packages) packages.add(used);
    } else if (kind === ".css") {
      files[name] = (await bundled(`pages/${name}`, {})).text;
    } else {
      files[name] = readFileSync(join(folder, name));
    }
  }
  files["LICENSES.txt"] = licenses("The scripts of the pages are part of svc (Apache-2.0) and contain:\n", packages);
  return { files, first };
}

function write(folder, files) {
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
}

/** What is over its budget, of each page and each file with one. `first` are the files of the first screen. */
function overBudget(outputs, first) {
  const over = [];
  const together = {};
  for (const [name, content] of Object.entries(outputs)) {
    const packed = gzipSync(content, { level: 9 }).length;
    const page = name.replace(/\.[^/]*$/, "");
    together[name] = packed;
    if (name.startsWith("pages/") && !(name in BUDGETS)) together[page] = (together[page] ?? 0) + packed;
    if (first.includes(name)) together["first screen"] = (together["first screen"] ?? 0) + packed;
  }
  for (const [name, budget] of Object.entries({ ...BUDGETS, "first screen": FIRST_SCREEN })) {
    if (process.argv.includes("--sizes")) console.log(`${name.padEnd(24)}${String(together[name] ?? 0).padStart(8)} gz  of ${budget}`);
    if ((together[name] ?? 0) > budget) over.push(`${name}: ${together[name]} bytes gz, its budget is ${budget}`);
  }
  return over;
}

const types = declarations();
const made = { ...(await sdk()), "svc.d.ts": types.sdk };
const { files: shown, first } = await pages();
/** What each wrapper for a framework leaves to its user's bundle. */
const WRAPPERS = {
  react: { entry: "react/src/index.tsx", external: ["react", "react/jsx-runtime"], banner: `"use client";\n` },
  vue: { entry: "vue/src/index.ts", external: ["vue"], banner: "" },
  svelte: { entry: "svelte/src/index.ts", external: ["svelte", "svelte/store"], banner: "" },
};
for (const [name, { entry, external, banner }] of Object.entries(WRAPPERS)) {
  const options = { format: "esm", external: [...external, "@svc/web"], jsx: "automatic", minify: false, tsconfigRaw: {} };
  const { text } = await bundled(entry, options);
  write(join(HERE, name, "dist"), { "index.js": `${banner}${text}`, "index.d.ts": types[name] });
}

rmSync(OUTPUT, { recursive: true, force: true });
write(join(OUTPUT, "sdk"), made);
write(join(OUTPUT, "pages"), shown);
rmSync(join(HERE, "sdk", "dist"), { recursive: true, force: true });
cpSync(join(OUTPUT, "sdk"), join(HERE, "sdk", "dist"), { recursive: true });

const named = (prefix, files) =>
  Object.fromEntries(Object.entries(files).map(([name, content]) => [`${prefix}/${name}`, content]));
const over = overBudget({ ...named("sdk", made), ...named("pages", shown) }, first.map((name) => `pages/${name}`));
if (over.length > 0) {
  console.error(`Over budget:\n  ${over.join("\n  ")}`);
  process.exit(1);
}
