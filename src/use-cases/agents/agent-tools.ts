/**
 * The tools of a key: those that are the same for all, one for each stored pipeline of its project, and one for each
 * capability. A list names only tools that the key may call; a call is checked again. Texts of pipelines and
 * capabilities are foreign (core/agents/foreign-text.ts).
 */
import { hash } from 'node:crypto';
import { quoteForeignText, toToolSchema } from '@capstan/core/agents/foreign-text';
import {
  type DigestedName,
  readDigestedName,
  readToolName,
  type ToolKind,
  toolKindOf,
  toToolName,
} from '@capstan/core/agents/tool-names';
import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import { ExecRequest } from '@capstan/core/contracts/decision';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { AppError } from '@capstan/core/errors/app-error';
import { createNameSuggester } from '@capstan/core/nearest-name';
import type { ServerCtx } from '../../context.ts';
import { isCapabilityName, listCapabilityNames } from '../../db/instance/capability-name.ts';
import { findSpecs, listKnownSpecs } from '../../db/instance/capability-spec.ts';
import {
  findDigest,
  findPipelineByDigest,
  type JobSchemaRow,
  listJobSchemas,
  listPipelineNames,
} from '../../db/pipeline.ts';
import type { ProjectFleet } from '../../parts/fleet/fleet-view.ts';
import { pickPresentSpecs } from '../../parts/fleet/specs.ts';
import {
  type Caller,
  holdsScope,
  isBeyond,
  isBeyondCalls,
  mayCall,
  requireName,
  requireScope,
  requireScopeOfSome,
  toCallingKey,
} from '../access/caller.ts';
import { makeDirectCall } from '../calls/direct-calls.ts';
import { decodeCursor, encodeCursor, refuseCursor } from '../cursor.ts';
import type { AgentTool, ToolListing, ToolRequest, ToolResult } from './agent-tool.ts';
import { findOwnTool, listOwnTools } from './own-tools.ts';
import { runPipeline } from './run-tools.ts';

const pageSize = 100;

function nameOf(kind: ToolKind, name: string): string {
  return toToolName(kind, name, (text) => hash('sha256', text));
}

// Pipelines.

function toRunTool({ pipeline, description, job_schema }: JobSchemaRow): ToolListing {
  const quoted = quoteForeignText(description ?? '', 'the author of the pipeline');
  return {
    name: nameOf('run', pipeline),
    title: pipeline,
    description:
      `Runs the pipeline ${pipeline} with these arguments as its job, and pays for its calls. Ask plan for the price first. ${quoted}`.trim(),
    inputSchema: toToolSchema(job_schema ?? {}),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  };
}

// Capabilities.

/** The price now, as the instances that are up declare it. */
function describePrice(fleet: Pick<ProjectFleet, 'of'>, capability: string): string {
  const up = fleet.of(capability).instances.filter(({ state }) => state === 'up');
  if (up.length === 0) return 'No instance is up now.';
  const prices = up.map(({ cost_type, rate_usd }) =>
    cost_type === 'free' || rate_usd === 0
      ? 'free'
      : `${rate_usd} USD per ${cost_type === 'per_call' ? 'call' : 'second'}`,
  );
  return `Instances up: ${up.length}. Price: ${[...new Set(prices)].slice(0, 5).join(', ')}.`;
}

/** The specs of the instances that are up, else the latest known ones. */
async function readSpecs(
  { db, fleet }: Pick<ServerCtx, 'db' | 'fleet'>,
  projectId: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, CapabilitySpec>> {
  const known = await listKnownSpecs(db, { projectId, names });
  const digests = new Map(known.map(({ name, digest }) => [name, digest]));
  const seen = fleet.seenBy(projectId);
  for (const capability of names) {
    const [present] = pickPresentSpecs(seen, { capability, versionRange: null, tags: [] });
    if (present !== undefined) digests.set(capability, present.digest);
  }
  const specs = await findSpecs(db, [...digests.values()]);
  return new Map(
    [...digests].flatMap(([name, digest]) => {
      const spec = specs.get(digest);
      return spec === undefined ? [] : [[name, spec]];
    }),
  );
}

function toCallTool(
  fleet: Pick<ProjectFleet, 'of'>,
  name: string,
  spec: CapabilitySpec | undefined,
): ToolListing {
  const quoted = quoteForeignText(spec?.description ?? '', 'an instance of the capability');
  return {
    name: nameOf('call', name),
    title: name,
    description:
      `Calls the capability ${name} on the best instance, and pays for it. ${describePrice(fleet, name)} ${quoted}`.trim(),
    inputSchema: toToolSchema(spec?.input ?? {}),
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: true },
  };
}

/** Progress keeps a client from giving up on a call that takes long. */
const reportEveryMs = 5_000;

async function callCapability(
  ctx: ServerCtx,
  { caller, marks, args, ceilingUsd, signal, report }: ToolRequest,
  capability: string,
): Promise<ToolResult> {
  const limit = ceilingUsd === null ? {} : { budget_ceiling_usd: ceilingUsd };
  const request = ExecRequest.parse({ input: args, priority: 'interactive', ...limit });
  const from = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - from) / 1_000);
    report({ done: seconds, message: `calling ${capability} for ${seconds} s` });
  }, reportEveryMs);
  try {
    const order = { caller: toCallingKey(caller, marks), capability, request, idempotency: null, signal };
    const { answer } = await makeDirectCall(ctx, order);
    if (answer instanceof AppError) throw answer;
    const { output, routing } = answer;
    const decision = routing as unknown as JsonObject;
    return { content: { output, cost_usd: routing.settled_usd ?? 0, decision } };
  } finally {
    clearInterval(timer);
  }
}

// The list, in pages: own tools, then pipelines, then capabilities, each by name.

interface ListPlace {
  readonly kind: ToolKind;
  readonly after: string | null;
}

function readPlace(cursor: string | undefined): ListPlace {
  if (cursor === undefined) return { kind: 'run', after: null };
  const [, kind, after = ''] = /^(run|call):(.*)$/.exec(decodeCursor(cursor)) ?? [];
  if (kind === undefined) throw refuseCursor('the tools');
  return { kind: kind as ToolKind, after: after === '' ? null : after };
}

interface ToolPage {
  readonly tools: readonly ToolListing[];
  readonly next: ListPlace | null;
}

/** A right to start some pipelines alone shows what a start of them takes. */
function mayListRuns(caller: Caller): boolean {
  return mayCall(caller, holdsScope(caller, 'run:write') ? 'pipeline:read' : 'run:write');
}

async function listRunTools({ db }: ServerCtx, caller: Caller, after: string | null): Promise<ToolPage> {
  const rows = mayListRuns(caller)
    ? await listJobSchemas(db, caller.project_id, { after, limit: pageSize + 1 })
    : [];
  const page = rows.slice(0, pageSize);
  const last = rows.length > pageSize ? (page.at(-1)?.pipeline ?? null) : null;
  const next: ListPlace = last === null ? { kind: 'call', after: null } : { kind: 'run', after: last };
  const allowed = page.filter(({ pipeline }) => !isBeyond(caller, 'run:write', pipeline));
  return { tools: allowed.map(toRunTool), next };
}

/** By name. */
async function listCallable({ db }: ServerCtx, caller: Caller): Promise<readonly string[]> {
  if (!mayCall(caller, 'capability:call')) return [];
  const known = await listCapabilityNames(db, caller.project_id);
  return [...known].filter((name) => !isBeyondCalls(caller, name)).toSorted();
}

async function listCallTools(ctx: ServerCtx, caller: Caller, after: string | null): Promise<ToolPage> {
  const { project_id } = caller;
  const names = await listCallable(ctx, caller);
  const rest = names.filter((name) => after === null || name > after);
  const page = rest.slice(0, pageSize);
  const specs = await readSpecs(ctx, project_id, page);
  const fleet = ctx.fleet.seenBy(project_id);
  const tools = page.map((name) => toCallTool(fleet, name, specs.get(name)));
  return { tools, next: rest.length > pageSize ? { kind: 'call', after: page.at(-1) ?? null } : null };
}

/** @throws AppError `request_invalid` when the cursor is not one of this list */
export async function listAgentTools(
  ctx: ServerCtx,
  caller: Caller,
  cursor: string | undefined,
): Promise<{ readonly tools: readonly ToolListing[]; readonly nextCursor: string | null }> {
  const { kind, after } = readPlace(cursor);
  const own =
    cursor === undefined ? [...listOwnTools()].filter(({ scope }) => holdsScope(caller, scope)) : [];
  const page = kind === 'run' ? await listRunTools(ctx, caller, after) : null;
  const isNextKind = page === null || page.next?.kind === 'call';
  const calls = isNextKind ? await listCallTools(ctx, caller, kind === 'call' ? after : null) : null;
  const next = calls === null ? (page?.next ?? null) : calls.next;
  return {
    tools: [...own.map(({ listing }) => listing), ...(page?.tools ?? []), ...(calls?.tools ?? [])],
    nextCursor: next === null ? null : encodeCursor(`${next.kind}:${next.after ?? ''}`),
  };
}

// A call.

interface Subject {
  readonly kind: ToolKind;
  readonly name: string;
}

function exists({ db }: ServerCtx, { project_id }: Caller, { kind, name }: Subject): Promise<boolean> {
  if (kind === 'call') return isCapabilityName(db, { projectId: project_id, name });
  return findDigest(db, { project_id, pipeline: name }, null).then((found) => found !== undefined);
}

/** A name with a digest is searched among all. */
async function findSubject(ctx: ServerCtx, caller: Caller, tool: string): Promise<string | null> {
  const kind = toolKindOf(tool);
  if (kind === null) return null;
  const readable = readToolName(kind, tool);
  if (readable !== null && nameOf(kind, readable) === tool)
    return (await exists(ctx, caller, { kind, name: readable })) ? readable : null;
  const digested = readDigestedName(kind, tool);
  if (digested === null) return null;
  const found = await findDigested(ctx, caller, { kind, ...digested });
  return found !== null && nameOf(kind, found) === tool ? found : null;
}

interface DigestedSubject extends DigestedName {
  readonly kind: ToolKind;
}

async function findDigested(
  { db }: ServerCtx,
  { project_id }: Caller,
  { kind, ...name }: DigestedSubject,
): Promise<string | null> {
  if (kind === 'run') return findPipelineByDigest(db, project_id, name);
  const names = [...(await listCapabilityNames(db, project_id))].filter((known) =>
    known.startsWith(name.begin),
  );
  return names.find((known) => hash('sha256', known).startsWith(name.digest)) ?? null;
}

/** For suggestions: names of the first tools of each kind, without their schemas. */
async function listNames(ctx: ServerCtx, caller: Caller): Promise<readonly string[]> {
  const own = [...listOwnTools()].filter(({ scope }) => holdsScope(caller, scope));
  const runs = mayListRuns(caller) ? await listPipelineNames(ctx.db, caller.project_id) : [];
  const calls = await listCallable(ctx, caller);
  return [
    ...own.map(({ listing }) => listing.name),
    ...runs.filter((name) => !isBeyond(caller, 'run:write', name)).map((name) => nameOf('run', name)),
    ...calls.map((name) => nameOf('call', name)),
  ];
}

async function describeMissing(ctx: ServerCtx, caller: Caller, tool: string): Promise<string> {
  const suggestion = createNameSuggester(await listNames(ctx, caller))(tool);
  return `there is no tool ${tool}; ${suggestion ?? 'tools/list names those of this key'}`;
}

/** What a call needs: the scope, and the work. */
export interface CallableTool extends Pick<AgentTool, 'scope' | 'call'> {
  /** The pipeline or capability of its own that it is for: a scope for this name is enough. */
  readonly subject?: string;
}

/** @returns the reason when there is no such tool */
export async function findAgentTool(
  ctx: ServerCtx,
  caller: Caller,
  tool: string,
): Promise<CallableTool | string> {
  const own = findOwnTool(tool);
  if (own !== undefined) return own;
  const subject = await findSubject(ctx, caller, tool);
  if (subject === null) return describeMissing(ctx, caller, tool);
  const isRun = toolKindOf(tool) === 'run';
  const scope = isRun ? 'run:write' : 'capability:call';
  return {
    scope,
    subject,
    call: (within, request) => {
      requireName(request.caller, scope, subject);
      return (isRun ? runPipeline : callCapability)(within, request, subject);
    },
  };
}

/** @throws AppError as the same act in the API */
export async function callAgentTool(
  ctx: ServerCtx,
  { scope, subject, call }: CallableTool,
  request: ToolRequest,
): Promise<ToolResult> {
  (subject === undefined ? requireScope : requireScopeOfSome)(request.caller, scope);
  return call(ctx, request);
}
