// Readers in a thread of their own, so that what they do with answers takes no time from the loop that times calls.
// They read an answer to its end and leave it as it is: a client that parses does so on a machine of its own.
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

const { url, key, paths, readers } = workerData;
const headers = { authorization: `Bearer ${key}` };
let isOver = false;
let bytes = 0;
const statuses = new Map();

async function read(path) {
  while (!isOver) {
    const response = await fetch(url + path, { headers });
    bytes += (await response.arrayBuffer()).byteLength;
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    if (response.status === 429) await sleep(1_000 * Number(response.headers.get('retry-after')));
  }
}

parentPort.once('message', () => {
  isOver = true;
});
await Promise.all(Array.from({ length: readers }, (_, at) => read(paths[at % paths.length])));
parentPort.postMessage({ statuses, bytes });
