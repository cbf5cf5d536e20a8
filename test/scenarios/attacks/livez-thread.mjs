// Asks `/livez` every 20 ms, in a thread of its own, so that what else its process does is not measured.
import { readFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const limitMs = 60_000;
const { url, pid } = workerData;
const agent = new Agent({ keepAlive: true, maxSockets: 1 });
let longestMs = 0;
let longestBusyMs = 0;
let count = 0;

function ask() {
  return new Promise((resolve) => {
    const request = get(`${url}/livez`, { agent, timeout: limitMs }, (answer) => {
      answer.resume().once('end', () => resolve(answer.statusCode === 200));
    });
    request.once('timeout', () => request.destroy());
    request.once('error', () => resolve(false));
  });
}

/** Processor time of the thread that answers, so far. */
function readBusyMs() {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

parentPort.on('message', () => {
  parentPort.postMessage({ longestMs, longestBusyMs, count });
  longestMs = 0;
  longestBusyMs = 0;
  count = 0;
});
for (;;) {
  const [beganAt, before] = [performance.now(), readBusyMs()];
  const isAlive = await ask();
  longestMs = Math.max(longestMs, isAlive ? performance.now() - beganAt : limitMs);
  longestBusyMs = Math.max(longestBusyMs, isAlive ? readBusyMs() - before : limitMs);
  count++;
  await sleep(20);
}
