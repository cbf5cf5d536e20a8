/**
 * `npm run pack [-- NAME …]`: writes the tarballs that are published into this folder: `capstan`, and the packages for
 * authors of capabilities (`capability`) and for programs (`client`). `--to FOLDER` writes them elsewhere.
 */
import { parseArgs } from 'node:util';
import { packTarballs, published } from './package/pack.ts';

const { values, positionals } = parseArgs({
  options: { to: { type: 'string', default: '.' } },
  allowPositionals: true,
});
const unknown = positionals.filter((name) => !published.includes(name));
if (unknown.length > 0) {
  console.error(`no package is called ${unknown.join(', ')}; there are ${published.join(', ')}`);
  process.exit(1);
}
const names = positionals.length === 0 ? published : positionals;
for (const tarball of await packTarballs(values.to, names)) console.log(tarball);
