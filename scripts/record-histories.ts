/**
 * `npm run histories [FEATURE …]`: runs features on a whole Capstan of its own and keeps their histories in
 * test/histories. An existing history is never written again: it stays as it is while its engine version lives.
 */
import { startStack } from '../src/dev/stack.ts';
import { callRecorders } from './histories/record-calls.ts';
import { engineRecorders } from './histories/record-engine.ts';
import { ladderRecorders } from './histories/record-ladders.ts';
import { waitRecorders } from './histories/record-waits.ts';
import { startRecording } from './histories/recording.ts';

const recorders = { ...callRecorders, ...engineRecorders, ...ladderRecorders, ...waitRecorders };
const wanted = process.argv.slice(2);
const chosen = Object.entries(recorders).filter(([name]) => wanted.length === 0 || wanted.includes(name));

const stack = await startStack({
  dataDir: '.capstan',
  ephemeral: true,
  samples: false,
  port: 0,
  // Few events, so that a run of a few dozen steps continues as new.
  environment: { ...process.env, HISTORY_EVENTS: '100', MAINTENANCE_MS: '200' },
  report: ({ part, status, detail }) => {
    if (status !== 'working') console.error(`${part}: ${detail}`);
  },
  signal: new AbortController().signal,
});
try {
  const recording = await startRecording(stack.info);
  for (const [name, record] of chosen) {
    await record(recording).catch((error: unknown) => {
      console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`);
      process.exitCode = 1;
    });
  }
  await recording.stop();
} finally {
  await stack.stop();
}
