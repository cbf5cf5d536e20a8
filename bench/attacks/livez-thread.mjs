// Asks `/livez` every 20 ms, in a thread of its own, so that what else its process does is not measured.
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const limitMs = 60_000;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let longestMs = 0;
let count = 0;

function ask() {
  return new Promise((resolve) => {
    const request = get(`${workerData}/livez`, { agent, timeout: limitMs }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode === 200));
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => resolve(false));
  });
}

parentPort.on('message', () => {
  parentPort.postMessage({ longestMs, count });
  longestMs = 0;
  count = 0;
});
for (;;) {
  const beganAt = performance.now();
  const isAlive = await ask();
  longestMs = Math.max(longestMs, isAlive ? performance.now() - beganAt : limitMs);
  count++;
  await sleep(20);
}
