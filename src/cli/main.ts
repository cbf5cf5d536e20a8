import { exitCodes } from './errors.ts';
import { runCapstan } from './program.ts';
import { createShell } from './shell.ts';

/** `capstan ls | head -1`: the reader has closed the pipe, which is not an error. */
function onOutputError(fault: NodeJS.ErrnoException): void {
  if (fault.code === 'EPIPE') process.exit(exitCodes.brokenPipe);
  throw fault;
}

process.stdout.on('error', onOutputError);
process.stderr.on('error', onOutputError);
await runCapstan(process.argv.slice(2), createShell(process));
