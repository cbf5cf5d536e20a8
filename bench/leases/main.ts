/**
 * Simulates free calls by claims and with leased slots: `npm run bench -- leases [--quick] [--json]`. Exit code 1 when
 * an instance has more calls at once than slots.
 */
import { parseArgs } from 'node:util';
import { type Measured, simulate, type World } from './simulation.ts';

const worlds: readonly World[] = [
  {
    name: '1,000 routers, 10,000 instances of 16 slots, each router calls 20 of them',
    routers: 1_000,
    instances: 10_000,
    slots: 16,
    known: 20,
    callsPerSecond: 500_000,
    callMs: 10,
  },
  {
    name: 'the same, each router calls 1,000 of them',
    routers: 1_000,
    instances: 10_000,
    slots: 16,
    known: 1_000,
    callsPerSecond: 500_000,
    callMs: 10,
  },
  {
    name: '200 routers, one instance of 500 slots, 80 % in use',
    routers: 200,
    instances: 1,
    slots: 500,
    known: 1,
    callsPerSecond: 40_000,
    callMs: 10,
  },
  {
    name: '200 routers, one instance of 7 slots',
    routers: 200,
    instances: 1,
    slots: 7,
    known: 1,
    callsPerSecond: 400,
    callMs: 10,
  },
];

function cells(
  way: string,
  { waits, calls, statements, seconds, leased, used, held, most }: Measured,
): string[] {
  const at = (share: number) => (waits[Math.floor(share * (calls - 1))] ?? 0).toFixed(2);
  return [
    way,
    String(calls),
    `${(100 * leased).toFixed(0)} %`,
    at(0.5),
    at(0.99),
    (statements / seconds).toFixed(0),
    (statements / calls).toFixed(2),
    `${((100 * used) / held).toFixed(0)} %`,
    `${(100 * most).toFixed(0)} %`,
  ];
}

const header = [
  '',
  'calls',
  'leased',
  'wait p50 ms',
  'p99',
  'statements/s',
  'a call',
  'used of held',
  'most at once',
];

function toLine(columns: readonly string[]): string {
  return columns.map((cell, at) => (at === 0 ? cell.padEnd(10) : cell.padStart(14))).join('');
}

const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
});
const measuredMs = options.quick ? 250 : 1_000;
const results = worlds.map((world) => ({
  world,
  claims: simulate(world, false, measuredMs),
  leases: simulate(world, true, measuredMs),
}));
if (options.json) {
  const shown = results.map(({ world, claims, leases }) => ({
    world,
    claims: { ...claims, waits: undefined, cells: cells('claims', claims) },
    leases: { ...leases, waits: undefined, cells: cells('leases', leases) },
  }));
  console.log(JSON.stringify(shown, null, 2));
} else {
  for (const { world, claims, leases } of results) {
    console.log(`\n${world.name}`);
    for (const line of [header, cells('claims', claims), cells('leases', leases)]) console.log(toLine(line));
  }
}
process.exitCode = results.every(({ claims, leases }) => claims.most <= 1 && leases.most <= 1) ? 0 : 1;
