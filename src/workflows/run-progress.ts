/** What people see of a run in Temporal's Web UI while it is under way: the table of its steps, and whether it waits for a person. */
import { setCurrentDetails } from '@temporalio/workflow';
import type { DrivenRun, Unit } from '../core/run/drive.ts';
import type { RunOutcome } from '../core/run/machine.ts';
import type { RunPipelineInput } from '../core/workflow-payloads/run-input.ts';
import { announceWaiting } from './searchable-facts.ts';
import { createProgressTable, type StepNote } from './web-ui/progress-table.ts';

export interface RunProgress {
  /** Notes what is known of a unit that has succeeded. */
  note(unit: Unit, note: StepNote): void;
  /** Says why a unit ended as it did. */
  end(unit: Unit, text: string): void;
  /** Says what the unit waits for; null when that is over. */
  remark(unit: Unit, text: string | null): void;
  /** Says whether the run waits for a person, if that has changed. */
  announce(): void;
  /** Writes the table when all that happens in this turn has happened. */
  refresh(): void;
  /** Writes the table now. @param outcome of a run that has ended */
  show(outcome: RunOutcome): void;
}

export function createRunProgress(input: RunPipelineInput, { state }: DrivenRun): RunProgress {
  const table = createProgressTable(input);
  let isAwaiting = state.reviews > 0;
  const show = (outcome?: RunOutcome): void => setCurrentDetails(table.toMarkdown(state, outcome));
  const refresh = onceATurn(show);
  return {
    note: ({ index }, note) => {
      table.note(index, note);
      refresh();
    },
    end: ({ index, item }, text) => {
      table.end(index, item === 0 ? text : `[${item}] ${text}`);
      refresh();
    },
    remark: ({ index }, text) => {
      table.remark(index, text);
      refresh();
    },
    announce: () => {
      const isNow = state.reviews > 0;
      if (isNow === isAwaiting) return;
      isAwaiting = isNow;
      announceWaiting(input, isNow);
    },
    refresh,
    show,
  };
}

/** However many steps end in one activation, the table is written once. */
function onceATurn(work: () => void): () => void {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    void Promise.resolve().then(() => {
      isDue = false;
      work();
    });
  };
}
