/** The rungs of the ladder by level: what a person reads, and which routed capability works there. */
export const topLevel = 4;
export const humanLevel = 5;

const rungs = [
  { label: 'static template', capability: null },
  { label: 'fast model', capability: 'model.fast' },
  { label: 'capable model', capability: 'model.capable' },
  { label: 'reasoning model', capability: 'model.reasoning' },
  { label: 'top-tier model', capability: 'model.top' },
] as const;

export const exhaustedText = 'the escalation ladder is exhausted and human review is required';

export function labelOf(level: number): string {
  return rungs[level]?.label ?? 'human';
}

/** Null for a capability that is no level's model. */
export function levelOfModel(capability: string): number | null {
  const level = rungs.findIndex((rung) => rung.capability === capability);
  return level === -1 ? null : level;
}

/** The capability of a level's model; null for level 0 and a person. */
export function modelOf(level: number): string | null {
  return rungs[level]?.capability ?? null;
}
