/**
 * A tool for agents: what a client shows, and the request that reaches it. The key is the whole authority: each tool
 * requires the scope that the same act requires in the API, and reads and pays in the key's project.
 */

import type { CancelSignal } from '@capstan/core/cancellation';
import type { Scope } from '@capstan/core/contracts/access';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { refuseRequest } from '@capstan/core/errors/app-error';
import { extendPointer } from '@capstan/core/json/values';
import type { z } from 'zod';
import type { ServerCtx } from '../../context.ts';
import type { Caller, CallMarks } from '../access/caller.ts';

export interface ToolProgress {
  /** Increases with every report. */
  readonly done: number;
  readonly total?: number;
  readonly message: string;
}

/** A request to call a tool. */
export interface ToolRequest {
  readonly caller: Caller;
  /** The labels and the user of the calls and runs that it starts. */
  readonly marks: CallMarks;
  readonly args: JsonObject;
  /** The most that a call or run of this client may cost, USD; null: no limit besides the budgets. */
  readonly ceilingUsd: number | null;
  /** Aborts when the client disconnects. */
  readonly signal: CancelSignal;
  readonly report: (progress: ToolProgress) => void;
  /** Counts a start against the key's rate. @throws AppError `rate_limited` */
  readonly asksToStart: () => void;
}

export interface ToolResult {
  readonly content: JsonObject;
  /** The request was accepted, and its work failed. */
  readonly isFailure?: boolean;
}

export interface ToolListing {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonObject & { readonly type: 'object' };
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly openWorldHint: boolean;
  };
}

export interface AgentTool {
  readonly listing: ToolListing;
  readonly scope: Scope;
  /** @throws AppError */
  readonly call: (ctx: ServerCtx, request: ToolRequest) => Promise<ToolResult>;
}

/** @throws AppError `request_invalid` with every fault */
export function readArguments<Schema extends z.ZodType>(schema: Schema, args: JsonObject): z.output<Schema> {
  const { success, data, error } = schema.safeParse(args);
  if (success) return data;
  throw refuseRequest(
    error.issues.map(({ path, code, message }) => ({
      pointer: extendPointer('', ...path.map(String)),
      code,
      message,
    })),
  );
}

/** A value that is JSON by its contract. */
export function toJson(value: object): JsonObject {
  return value as JsonObject;
}

/** Fields with a value. */
export function withoutNothing(fields: Readonly<Record<string, Json | undefined>>): JsonObject {
  const known = Object.entries(fields).filter((field): field is [string, Json] => field[1] !== undefined);
  return Object.fromEntries(known);
}
