// Readers in a thread of their own, so that what they do with answers takes no time from the loop that times calls.
// They read an answer to its end and leave it as it came: a client unpacks and parses on a machine of its own.
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const { url, key, paths, readers } = workerData;
const headers = { authorization: `Bearer ${key}`, 'accept-encoding': 'gzip' };
const agent = new Agent({ keepAlive: true });
let isOver = false;
let bytes = 0;
const statuses = new Map();

function ask(path) {
  return new Promise((resolve, reject) => {
    request(url + path, { headers, agent }, (response) => {
      response.on('data', (chunk) => {
        bytes += chunk.byteLength;
      });
      response.once('error', reject).once('end', () => resolve(response));
    })
      .once('error', reject)
      .end();
  });
}

async function read(path) {
  while (!isOver) {
    const { statusCode, headers: answered } = await ask(path);
    statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1);
    if (statusCode === 429) await sleep(1_000 * Number(answered['retry-after']));
  }
}

parentPort.once('message', () => {
  isOver = true;
});
await Promise.all(Array.from({ length: readers }, (_, at) => read(paths[at % paths.length])));
agent.destroy();
parentPort.postMessage({ statuses, bytes });
