/** A ladder as a Markdown table, for Temporal's Web UI: its last places, with what was done there. */

import { labelOf } from '../../core/ladder/labels.ts';
import type { LadderPosition, LadderStage } from '../../core/workflow-payloads/escalate-input.ts';
import { toDetails } from './details.ts';

const shown = 40;

export interface LadderTable {
  enter(place: Pick<LadderPosition, 'transition' | 'command'>): void;
  toMarkdown(): string;
}

export function createLadderTable(title: string): LadderTable {
  const rows: string[] = [];
  return {
    enter: ({ transition, command }) => {
      rows.push(`| ${transition} | ${describeCommand(command)} |`);
      if (rows.length > shown) rows.shift();
    },
    toMarkdown: () => toDetails([title, '', '| | now |', '|---|---|', ...rows]),
  };
}

/** One line without characters that would end a cell. */
export function describeCommand(command: LadderStage): string {
  switch (command.type) {
    case 'execute':
      return `execute at level ${command.level} (${labelOf(command.level)})`;
    case 'advise':
      return `ask level ${command.level} (${labelOf(command.level)}) for advice`;
    case 'end':
      return describeEnd(command);
  }
}

function describeEnd(end: Extract<LadderStage, { type: 'end' }>): string {
  switch (end.outcome) {
    case 'succeeded':
      return end.skill_id === undefined ? 'succeeded' : `succeeded, skill ${end.skill_id}`;
    case 'skipped':
      return 'skipped by a person';
    case 'failed':
    case 'cancelled':
      return `${end.outcome} (${end.error.code})`;
    case 'review':
      return `in_review, due ${end.due_at}, ${end.review_id}`;
  }
}
