/** Generates from the spec what an app's build does, and checks that the Android module implements it: `node codegen.mjs [FOLDER]`. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { TypeScriptParser } = require("@react-native/codegen/lib/parsers/typescript/parser.js");
const { codegenConfig } = JSON.parse(readFileSync(new URL("package.json", import.meta.url), "utf8"));
const spec = new URL("src/NativeSvcVisitor.ts", import.meta.url).pathname;
const schema = new TypeScriptParser().parseFile(spec);

const generate = (name, ...more) =>
  require(`@react-native/codegen/lib/generators/modules/${name}`).generate(codegenConfig.name, schema, ...more);
const files = new Map([
  ...generate("GenerateModuleJavaSpec.js", codegenConfig.android.javaPackageName, false),
  ...generate("GenerateModuleObjCpp/index.js", codegenConfig.android.javaPackageName, false, codegenConfig.name),
]);
const [java] = [...files].filter(([name]) => name.endsWith("NativeSvcVisitorSpec.java")).map(([, text]) => text);
const abstract = [...java.matchAll(/public abstract \w+ (\w+)\(([^)]*)\)/g)].map(([, name, list]) => `${name}/${list ? list.split(",").length : 0}`);
const module = readFileSync(new URL("android/src/main/kotlin/svc/visitor/reactnative/SvcVisitorModule.kt", import.meta.url), "utf8");
const overridden = [...module.matchAll(/override fun (\w+)\(([^)]*)\)/g)].map(([, name, list]) => `${name}/${list ? list.split(",").length : 0}`);
for (const one of abstract) if (!overridden.includes(one)) throw new Error(`SvcVisitorModule.kt lacks ${one}`);

const [folder] = process.argv.slice(2);
for (const [name, text] of folder ? files : []) {
  const place = `${folder}/${name}`;
  mkdirSync(place.slice(0, place.lastIndexOf("/")), { recursive: true });
  writeFileSync(place, text);
}
console.log(JSON.stringify({ methods: abstract, files: [...files.keys()] }));
