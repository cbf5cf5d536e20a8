/** `npm run bench -- NAME [options]`: loads a bench; without a name it lists all of them. */
import { benches } from './commands/benches.ts';
import { runNamed } from './commands/named.ts';

await runNamed('bench', benches, ({ load }) => {
  // The bench reads what follows its name.
  process.argv.splice(2, 1);
  return load();
});
