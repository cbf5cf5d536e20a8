// Preloaded into the process under attack: SIGUSR2 makes it collect its garbage, which V8 puts off while nothing
// happens, so that what is measured is what it keeps.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
process.on('SIGUSR2', () => collect());
