"use strict";

// One request in three languages. Keys that were not entered are variables of the environment: SVC_PUBLIC_KEY, ...

const indented = (value, pad) => JSON.stringify(value, null, 2).replaceAll("\n", `\n${pad}`);

function inPython(value, pad = "") {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  const inner = `${pad}    `;
  if (Array.isArray(value)) return `[${value.map((part) => inPython(part, pad)).join(", ")}]`;
  if (typeof value === "object") {
    const rows = Object.entries(value).map(([name, part]) => `${inner}${JSON.stringify(name)}: ${inPython(part, inner)},\n`);
    return rows.length > 0 ? `{\n${rows.join("")}${pad}}` : "{}";
  }
  return JSON.stringify(value);
}

/** The text of a header around a variable of the environment, in the given form: ["svc-console=", "SVC_SESSION"]. */
const isVariable = (value) => Array.isArray(value);
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl({ method, url, headers, body, streams }) {
  const options = Object.entries(headers).map(([name, value]) =>
    isVariable(value) ? `-H "${name}: ${value[0]}$${value[1]}"` : `-H ${quoted(`${name}: ${value}`)}`,
  );
  if (body !== undefined) options.push(`-d ${quoted(JSON.stringify(body, null, 2))}`);
  return [`curl ${streams ? "--no-buffer " : ""}-X ${method} ${quoted(url)}`, ...options].join(" \\\n  ");
}

function javascript({ method, url, headers, body, streams }) {
  const rows = Object.entries(headers).map(([name, value]) => {
    const text = isVariable(value) ? `${value[0] ? `${JSON.stringify(value[0])} + ` : ""}process.env.${value[1]}` : JSON.stringify(value);
    return `    ${JSON.stringify(name)}: ${text},\n`;
  });
  const parts = [`  method: ${JSON.stringify(method)},\n`];
  if (rows.length > 0) parts.push(`  headers: {\n${rows.join("")}  },\n`);
  if (body !== undefined) parts.push(`  body: JSON.stringify(${indented(body, "  ")}),\n`);
  const read = streams
    ? "for await (const part of response.body) process.stdout.write(part);"
    : "console.log(response.status, await response.text());";
  return `const response = await fetch(${JSON.stringify(url)}, {\n${parts.join("")}});\n${read}`;
}

function python({ method, url, headers, body, streams }) {
  const rows = Object.entries(headers).map(([name, value]) => {
    const text = isVariable(value) ? `${value[0] ? `${JSON.stringify(value[0])} + ` : ""}os.environ["${value[1]}"]` : JSON.stringify(value);
    return `        ${JSON.stringify(name)}: ${text},\n`;
  });
  const parts = [`    ${JSON.stringify(url)},\n    method=${JSON.stringify(method)},\n`];
  if (rows.length > 0) parts.push(`    headers={\n${rows.join("")}    },\n`);
  if (body !== undefined) parts.push(`    data=json.dumps(${inPython(body, "    ")}).encode(),\n`);
  const needed = [body === undefined ? "" : "json", rows.some((row) => row.includes("os.environ")) ? "os" : "", "urllib.request"];
  const read = streams
    ? '    for line in response:\n        print(line.decode(), end="")'
    : "    print(response.status, response.read().decode())";
  return `${needed.filter(Boolean).map((name) => `import ${name}`).join("\n")}

request = urllib.request.Request(
${parts.join("")})
with urllib.request.urlopen(request) as response:
${read}`;
}

window.samples = { curl, JavaScript: javascript, Python: python };
