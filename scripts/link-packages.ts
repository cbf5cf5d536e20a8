/**
 * A part of `npm run build`: compiled files reach the packages of the workspace, which are compiled into the same
 * folder, by relative paths. So a published package contains those that it uses, and asks no registry for them.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { sourceOf } from './package/source-of.ts';

const folder = 'dist';
const imports = /((?:\bfrom|\bimport)\s*\(?\s*["'])(@capstan\/[^"'\n]+)/g;

for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
  if (!/\.(js|d\.ts)$/.test(name)) continue;
  const file = join(folder, name);
  const text = readFileSync(file, 'utf8');
  const linked = text.replace(imports, (whole, before, specifier) => {
    const source = sourceOf(specifier);
    if (source === null) return whole;
    return `${before}./${relative(dirname(file), join(folder, source.replace(/\.ts$/, '.js')))}`;
  });
  if (linked !== text) writeFileSync(file, linked);
}
