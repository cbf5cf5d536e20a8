/** Explains the word under the pointer: a capability, a key, a field, or part of an expression. */
import { type EditorCursor, segmentsOf } from './completion.ts';
import { describeOffer, type EditorFacts, fieldsAt } from './facts.ts';
import { pathAt, stepLines, valueIn } from './place.ts';

export interface HoverText {
  readonly title: string;
  /** Its type, or its price. */
  readonly detail: string;
  readonly about: string;
}

function describeCapability(name: string, { specs }: EditorFacts): HoverText | null {
  const spec = specs[name];
  if (spec === undefined) return null;
  return { title: name, detail: describeOffer(spec), about: spec.description ?? '' };
}

function describeField(schema: object | undefined, path: readonly string[]): HoverText | null {
  const fields = fieldsAt((schema ?? {}) as never, path.slice(0, -1));
  const found = fields.find(({ name }) => name === path.at(-1));
  return found === undefined ? null : { title: found.name, detail: found.type, about: found.about };
}

/** @param reference up to the word under the pointer: `steps.cut.output.clip` */
function describeReference(reference: string, facts: EditorFacts): HoverText | null {
  const [root = '', id = '', part, ...path] = reference.split('.');
  if (root === 'job') return describeField(facts.job, segmentsOf(reference).slice(1));
  if (root !== 'steps' || !Object.hasOwn(facts.steps, id)) return null;
  const capability = facts.steps[id] ?? '';
  if (part === 'output' && path.length > 0) {
    return describeField(facts.specs[capability]?.output, segmentsOf(path.join('.')));
  }
  const known = describeCapability(capability, facts);
  return { title: id, detail: capability === '' ? 'step' : `step, ${capability}`, about: known?.about ?? '' };
}

function describeKey(key: string, { lines, at }: EditorCursor, facts: EditorFacts): HoverText | null {
  const [top, , inStep, ...rest] = pathAt(lines, at);
  if (inStep === 'input') {
    const capability = valueIn(stepLines(lines, at), 'capability') ?? '';
    return describeField(facts.specs[capability]?.input, [...rest, key]);
  }
  if (inStep !== undefined || (top !== undefined && top !== 'steps')) return null;
  const about = top === undefined ? facts.keys.pipeline[key] : facts.keys.step[key];
  return about === undefined ? null : { title: key, detail: '', about };
}

/** @param cursor its `before` ends with the word under the pointer */
export function describeAt(cursor: EditorCursor, facts: EditorFacts): HoverText | null {
  const { before, lines, at } = cursor;
  const reference = /(?:steps|job)\.[\w.[\]*-]*$/.exec(before)?.[0];
  if (reference !== undefined) return describeReference(reference, facts);
  const capability = /^\s*(?:-\s+)?capability:\s*["']?([\w.-]+)$/.exec(before)?.[1];
  if (capability !== undefined) {
    const whole = valueIn([lines[at] ?? ''], 'capability') ?? capability;
    return describeCapability(whole, facts);
  }
  const key = /^\s*(?:-\s+)?([\w-]+)$/.exec(before)?.[1];
  const isKey = key !== undefined && (lines[at] ?? '').slice(before.length).startsWith(':');
  return isKey ? describeKey(key, cursor, facts) : null;
}
