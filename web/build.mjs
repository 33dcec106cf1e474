/** Bundles the entry points into the Python package, each marked with the hash of all sources. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const target = fileURLToPath(new URL("../src/coterie/web/bundle/", import.meta.url));
const entries = { report: "src/report.ts", player: "src/player_page.ts", app: "src/app/main.tsx" };

/** SHA-256 of names and contents; tests/web/test_bundle.py takes it, too. */
function hashOfSources() {
  const settings = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"];
  const sources = readdirSync(`${here}src`, { recursive: true, withFileTypes: true })
    .filter((file) => file.isFile())
    .map((file) => `${file.parentPath.slice(here.length)}/${file.name}`);
  const hash = createHash("sha256");
  for (const name of [...settings, ...sources].sort()) {
    hash.update(`${name}\0${readFileSync(here + name, "utf8")}\0`);
  }
  return hash.digest("hex");
}

/** The licences of the libraries in the bundle of the app, which ask to be part of it. */
function notices() {
  const names = ["preact", "@preact/signals", "@preact/signals-core"];
  const users = new Map();
  for (const name of names) {
    const licence = readFileSync(`${here}node_modules/${name}/LICENSE`, "utf8").trim();
    users.set(licence, [...(users.get(licence) ?? []), name]);
  }
  const texts = [...users].map(([licence, packages]) => `${packages.join(", ")}\n${licence}`);
  return `/*\n${texts.join("\n\n")}\n*/\n`;
}

const mark = `/* coterie, made from web/ by make web; sha256 of sources: ${hashOfSources()} */`;
for (const [name, entry] of Object.entries(entries)) {
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    charset: "ascii",
    legalComments: "none",
    write: false,
  });
  const text = outputFiles[0].text;
  const code = `${mark}\n${name === "app" ? notices() : ""}${text}`;
  writeFileSync(`${target}${name}.js`, code);
  console.log(`${name}.js ${(code.length / 1000).toFixed(1)} KB`);
}
