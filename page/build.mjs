// Bundles the page into the package: one script, one style sheet, one document.
import { build } from "esbuild";
import { copyFile, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const target = process.argv[2] ?? join(here, "..", "icetree", "explore", "page");

await mkdir(target, { recursive: true });
await build({
  entryPoints: [join(here, "src", "explorer.js")],
  outfile: join(target, "explorer.js"),
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2020",
  charset: "utf8",
  legalComments: "inline",
});
await build({
  entryPoints: [join(here, "src", "explorer.css")],
  outfile: join(target, "explorer.css"),
  minify: true,
});
await copyFile(join(here, "src", "index.html"), join(target, "index.html"));
