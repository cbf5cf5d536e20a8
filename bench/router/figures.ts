/** The last figures, as the pages show them: kept beside the bench, and replaced by `npm run bench -- figures`. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { protocols } from './payload.ts';
import { ownTimeOf, type RouterResult, toTable } from './result.ts';

export const routerFiguresFile = 'bench/router/figures.json';

export function readRouterFigures(): RouterResult {
  const file = fileURLToPath(new URL(`../../${routerFiguresFile}`, import.meta.url));
  return JSON.parse(readFileSync(file, 'utf8')) as RouterResult;
}

/** Three digits are more than the rounds agree on. */
function round(_key: string, value: unknown): unknown {
  return typeof value === 'number' ? Number(value.toPrecision(4)) : value;
}

export function writeRouterFigures(result: RouterResult): string {
  return `${JSON.stringify(result, round, 2)}\n`;
}

const groups = protocols.flatMap((protocol) => [protocol, `${protocol} stream`]);

type Row = RouterResult['rows'][number];

/** One line for each system of the requests to models, one column for each kind of request. */
function tableOf(rows: readonly Row[], cellOf: (row: Row) => string): string {
  const names = rows.flatMap(({ name }) => (name.startsWith('chat: ') ? [name.slice('chat: '.length)] : []));
  const lines = names.map((name) => {
    const cells = groups.map((group) => rows.find((row) => row.name === `${group}: ${name}`));
    return [name, ...cells.map((row) => (row === undefined ? '–' : cellOf(row)))];
  });
  return [['', ...groups], ['---', ...groups.map(() => '---:')], ...lines]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}

function sourceOf({ at, machine, rounds }: RouterResult): string {
  return `${rounds} rounds on ${machine}, ${at.slice(0, 10)}`;
}

/** For the page of the project. */
export function toGatewayTable(result: RouterResult): string {
  const table = tableOf(
    result.rows,
    ({ p50_1_ms, per_second_32 }) => `${p50_1_ms.toFixed(2)} · ${per_second_32.toFixed(0)}`,
  );
  return `Milliseconds of one caller at the median · calls per second of 32 callers (${sourceOf(result)}):\n\n${table}`;
}

/** For the page of the benches: every line that the bench prints, and the work of the processors. */
export function toRouterFigures(result: RouterResult): string {
  const own = tableOf(result.rows, ({ name, processor_us }) => ownTimeOf(name, processor_us).toFixed(0));
  return [
    toGatewayTable(result),
    `Microseconds of processor time of the gateway for a call of 32 callers, without Postgres:\n\n${own}`,
    `All that the bench prints:\n\n\`\`\`\n${toTable(result)}\n\`\`\``,
  ].join('\n\n');
}
