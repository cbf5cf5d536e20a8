/**
 * One replay: requests under one ceiling, through some servers, until each has ended or has no room. Either all begin at
 * once, or some callers send one after the other while a server is killed every few seconds.
 */
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { request } from '../router/register.ts';
import type { CapstanServer } from '../router/systems.ts';
import type { Effort, Meter } from './meter.ts';
import { costOf, model, type Provider } from './provider.ts';
import type { ChatRequest } from './trace.ts';

export interface Scenario {
  /** The ceiling by the true cost of all requests; null: there is none. */
  readonly ceiling: number | null;
  /** The answer that its caller allows, tokens. */
  readonly most: number;
  /** Whether holds grow, or each call holds its worst case. */
  readonly grows: boolean;
  readonly servers: number;
  /** How much faster than 50 tokens a second the model writes. */
  readonly speed: number;
  /** How many send the requests, each one after the other; null: all requests begin at once. */
  readonly callers: number | null;
  /** Seconds between kills; null: no server is killed. */
  readonly killEveryS: number | null;
}

export interface Replayed extends Scenario {
  readonly finished: number;
  readonly cut: number;
  /** Of the ceiling: what went into finished answers, and what was spent in all. */
  readonly useful: number;
  readonly spent: number;
  /** Nano-USD above the ceiling, by the ledger and by the provider. */
  readonly over: number;
  readonly kills: number;
  /** Nano-USD that are held some time after the end. */
  readonly held: number;
  readonly seconds: number;
  /** Pieces per 1,000 tokens. */
  readonly pieces: number;
  /** Per 1,000 tokens. */
  readonly effort: Effort;
}

interface World {
  readonly servers: readonly CapstanServer[];
  readonly operator: CapstanServer;
  readonly databaseUrl: string;
  readonly provider: Provider;
  readonly meter: Meter;
  /** Kills a server; it starts again by itself. */
  readonly kill: (server: number) => void;
}

interface ExecBody {
  readonly output?: { readonly finish_reason: string };
  readonly code?: string;
}

type Ended = 'finished' | 'cut' | 'refused';

/** A caller who is refused for now asks again after this time, ms. */
const againMs = 200;
/** What a killed server held is free after this time, ms. */
const freeMs = 35_000;

/** @returns null: the server is gone */
async function askOnce({ url, apiKey }: CapstanServer, body: string): Promise<Ended | 'again' | null> {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const call = fetch(`${url}/v1/capabilities/${model.name}/exec`, { method: 'POST', headers, body });
  const answered = await call.then(
    async (answer) => ({ status: answer.status, body: (await answer.json()) as ExecBody }),
    () => null,
  );
  if (answered === null) return null;
  const { output, code } = answered.body;
  if (answered.status === 200) return output?.finish_reason === 'length' ? 'cut' : 'finished';
  if (code === 'budget_exhausted') return 'refused';
  if (answered.status === 429 || answered.status === 503) return 'again';
  throw new Error(`a call was answered ${answered.status} ${code}`);
}

/** Asks the first server, and the next one when that is gone. */
async function ask(
  servers: readonly CapstanServer[],
  request: ChatRequest,
  scenario: Scenario,
): Promise<Ended> {
  const { most, grows, speed, killEveryS } = scenario;
  const input = { ...request, most };
  const body = JSON.stringify({ input, on_budget: grows ? 'stop' : 'refuse', timeout_ms: 600_000 });
  for (let at = 0; ; ) {
    const ended = await askOnce(servers[at % servers.length] as CapstanServer, body);
    if (ended !== 'again' && ended !== null) return ended;
    if (ended === null && killEveryS === null) throw new Error('a server is gone');
    if (ended === null) at += 1;
    await pause(againMs / speed);
  }
}

/** A project with a limit of its own, and its key. */
async function addProject({ operator }: World, limitUsd: number | null) {
  const created = await request(operator, 'POST', '/v1/projects', {
    name: 'replay',
    daily_limit_usd: limitUsd ?? 0,
  });
  const { project_id } = (await created.json()) as { project_id: string };
  const made = await request(operator, 'POST', '/v1/keys', {
    name: 'replay',
    scopes: ['capability:call'],
    projects: [project_id],
  });
  const { key } = (await made.json()) as { key: string };
  return { projectId: project_id, apiKey: key };
}

async function query<Row>(databaseUrl: string, text: string, projectId: string): Promise<Row> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const { rows } = await client.query(text, [projectId]).finally(() => client.end());
  return rows[0];
}

async function readBooks({ databaseUrl }: World, projectId: string) {
  for (;;) {
    const books = await query<{ open: number; spent: number; pieces: number }>(
      databaseUrl,
      `select count(*) filter (where finished_at is null)::int as open, coalesce(sum(settled_nano), 0)::float8 as spent,
         coalesce(sum(pieces), 0)::float8 as pieces from attempt where project_id = $1`,
      projectId,
    );
    if (books.open === 0) return books;
    await pause(100);
  }
}

function readHeld({ databaseUrl }: World, projectId: string): Promise<{ held: number }> {
  const text = `select (select coalesce(sum(reserved_nano), 0) from budget where scope like '%' || $1 || '%')::float8
    + (select coalesce(sum(reserved_nano), 0) from attempt where project_id = $1 and finished_at is null)::float8 as held`;
  return query(databaseUrl, text, projectId);
}

/** The requests in order, each by the next caller who is free. */
async function sendAll(
  servers: readonly CapstanServer[],
  requests: readonly ChatRequest[],
  scenario: Scenario,
): Promise<Ended[]> {
  const ended: Ended[] = [];
  const left = requests.entries();
  const send = async (): Promise<void> => {
    for (const [at, one] of left) {
      const turned = servers.map((_, n) => servers[(at + n) % servers.length] as CapstanServer);
      ended[at] = await ask(turned, one, scenario);
    }
  };
  await Promise.all(Array.from({ length: scenario.callers ?? requests.length }, send));
  return ended;
}

/** @returns ends the kills, with their number */
function startKills({ kill }: World, { killEveryS, servers }: Scenario): () => number {
  if (killEveryS === null) return () => 0;
  let kills = 0;
  const clock = setInterval(() => {
    kill(kills % servers);
    kills += 1;
  }, killEveryS * 1_000);
  return () => {
    clearInterval(clock);
    return kills;
  };
}

export async function replay(
  world: World,
  requests: readonly ChatRequest[],
  scenario: Scenario,
): Promise<Replayed> {
  const { ceiling, speed } = scenario;
  const trueUsd = requests.reduce((sum, one) => sum + costOf(one), 0);
  const limitUsd = ceiling === null ? null : Number((trueUsd * ceiling).toFixed(9));
  const { projectId, apiKey } = await addProject(world, limitUsd);
  world.provider.speed = speed;
  world.provider.takeBill();
  const beganAt = performance.now();
  const used = world.servers.slice(0, scenario.servers).map((server) => ({ ...server, apiKey }));
  const endKills = startKills(world, scenario);
  const stopMeter = await world.meter.start();
  const ended = await sendAll(used, requests, scenario);
  const seconds = ((performance.now() - beganAt) / 1_000) * speed;
  const { statements, serversMs, postgresMs } = await stopMeter();
  const kills = endKills();
  if (kills > 0) await pause(freeMs);
  const { held } = await readHeld(world, projectId);
  const books = await readBooks(world, projectId);
  const billed = world.provider.takeBill() * 1e9;
  const limit = limitUsd === null ? Number.POSITIVE_INFINITY : limitUsd * 1e9;
  const finished = requests.filter((_, at) => ended[at] === 'finished');
  const goodUsd = finished.reduce((sum, one) => sum + costOf(one), 0);
  const thousands = requests.reduce((sum, { outputTokens }) => sum + outputTokens, 0) / 1_000;
  return {
    ...scenario,
    finished: finished.length / requests.length,
    cut: ended.filter((end) => end === 'cut').length / requests.length,
    useful: goodUsd / (limitUsd ?? trueUsd),
    spent: books.spent / (limitUsd === null ? trueUsd * 1e9 : limit),
    over: Math.round(Math.max(0, books.spent - limit, billed - limit)),
    kills,
    held,
    seconds,
    pieces: books.pieces / thousands,
    effort: {
      statements: statements / thousands,
      serversMs: serversMs / thousands,
      postgresMs: postgresMs / thousands,
    },
  };
}
