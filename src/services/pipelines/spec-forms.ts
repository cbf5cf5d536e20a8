/**
 * The specs that count for the calls of a definition: those of instances that are up, else all that were known, of which
 * any may come back. Of instances that are up, memory tells; the rest is asked for all steps at once.
 */
import semver from 'semver';
import type { PipelineDefinition, StepDefinition } from '../../contracts/pipeline.ts';
import type { CapabilityForm } from '../../core/definition/checks/definition-facts.ts';
import type { Db } from '../../db/connect.ts';
import { findSpecs, listKnownSpecs } from '../../db/spec/known-specs.ts';
import type { InputForms } from '../../definitions/input-forms.ts';
import { isWanted, pickPresentSpecs, type SpecTarget } from '../registry/present-specs.ts';
import type { FleetPoller } from '../routing/fleet/fleet-poller.ts';

export interface SpecDigests {
  /** The digests of each kind of call, by `callOf`. */
  readonly byCall: ReadonlyMap<string, readonly string[]>;
  /** The first of each capability. */
  readonly byCapability: Readonly<Record<string, string>>;
}

interface SpecSources {
  readonly db: Db;
  readonly fleet: Pick<FleetPoller, 'of'>;
}

/** Steps with the same are served by the same instances. */
function callOf({ capability, capability_version, tags = [] }: StepDefinition): string {
  return JSON.stringify([capability, capability_version ?? null, tags]);
}

export async function findSpecDigests({ db, fleet }: SpecSources, calls: Calls): Promise<SpecDigests> {
  const byCall = new Map<string, readonly string[]>();
  const absent = new Map<string, SpecTarget>();
  for (const [call, target] of calls) {
    const present = pickPresentSpecs(fleet, target);
    if (present.length > 0)
      byCall.set(
        call,
        present.map(({ digest }) => digest),
      );
    else absent.set(call, target);
  }
  const names = [...new Set([...absent.values()].map(({ capability }) => capability))];
  const known = names.length === 0 ? [] : await listKnownSpecs(db, names);
  for (const [call, target] of absent) {
    const specs = known.filter(
      ({ name, version }) => name === target.capability && isWanted(target, version),
    );
    byCall.set(
      call,
      specs.map(({ digest }) => digest),
    );
  }
  return { byCall, byCapability: pickFirst(calls, byCall) };
}

export type Calls = ReadonlyMap<string, SpecTarget>;

/** The kinds of calls that a definition makes, by `callOf`. */
export function listCalls({ steps }: Pick<PipelineDefinition, 'steps'>): Calls {
  const calls = new Map<string, SpecTarget>();
  for (const step of steps) {
    const { capability, capability_version: versionRange = null, tags = [] } = step;
    if (capability === undefined || calls.has(callOf(step))) continue;
    if (versionRange !== null && semver.validRange(versionRange) === null) continue;
    calls.set(callOf(step), { capability, versionRange, tags });
  }
  return calls;
}

function pickFirst(calls: Calls, byCall: SpecDigests['byCall']): Readonly<Record<string, string>> {
  const first = new Map<string, string>();
  for (const [call, { capability }] of calls) {
    const digest = byCall.get(call)?.[0];
    if (digest !== undefined && !first.has(capability)) first.set(capability, digest);
  }
  return Object.fromEntries(first);
}

/** @returns the forms of a step, none when nothing is known of its capability */
export async function readSpecForms(
  { db, forms }: { readonly db: Db; readonly forms: InputForms },
  { byCall }: Pick<SpecDigests, 'byCall'>,
): Promise<(step: StepDefinition) => readonly CapabilityForm[]> {
  const read = new Map<string, CapabilityForm>();
  const unread: string[] = [];
  for (const digest of new Set([...byCall.values()].flat())) {
    const form = forms.ofSpec(digest);
    if (form === undefined) unread.push(digest);
    else read.set(digest, form);
  }
  const specs = unread.length === 0 ? new Map() : await findSpecs(db, unread);
  for (const [digest, spec] of specs) read.set(digest, forms.addSpec(digest, spec));
  return (step) => (byCall.get(callOf(step)) ?? []).flatMap((digest) => read.get(digest) ?? []);
}
