import type { Bar } from './bars.ts';

/** The looks of bars by kind: they differ in outline, not in colour alone. A call has the tone of its state instead. */
export const barLooks: Readonly<Record<Bar['kind'], string>> = {
  waiting: 'bg-line-strong',
  retry: 'hatched border border-waiting',
  called: 'bg-done',
  failed: 'bg-failed',
  cancelled: 'border border-muted bg-quiet-soft',
  expected: 'border border-dashed border-muted/70',
  planned: 'border border-dashed border-accent bg-accent-soft',
  perhaps: 'border border-dotted border-accent',
};
