/** The input of one step against what takes it: types where expressions stand, whole values where none do. */
import type { Json } from '../../../contracts/primitives.ts';
import type { TemplateNode } from '../../expression/template.ts';
import { splitPointer } from '../../json-pointer.ts';
import { fitTemplate } from '../../schema-types/fit-template.ts';
import type { Effort } from '../../schema-types/overlap.ts';
import type { TemplateTypes } from '../../schema-types/template-type.ts';
import { locateInTemplate, readPartialValue } from '../input-holes.ts';
import type { InputFault } from './definition-facts.ts';
import type { DefinitionFinding } from './finding.ts';
import type { Consumer } from './step-forms.ts';

export interface InputCheck {
  readonly consumer: Consumer;
  readonly input: {
    /** As in the definition. */
    readonly written: Json;
    readonly root: TemplateNode;
    readonly types: TemplateTypes;
  };
  /** Where the input stands in the definition. */
  readonly pointer: string;
  /** For comparing types. */
  readonly effort: Effort;
  /** For judging values. */
  readonly work: Effort;
  readonly report: (finding: DefinitionFinding) => void;
}

export function checkInput({ consumer, input, pointer, effort, work, report }: InputCheck): void {
  const told = new Set<string>();
  const place = (inValue: string): string => pointer + locateInTemplate(input.written, splitPointer(inValue));
  fitTemplate(input.root, consumer.takes, {
    types: input.types,
    consumer: consumer.name,
    effort,
    report: (fault) => {
      if (fault.severity === 'error') told.add(fault.pointer);
      report({ ...fault, pointer: place(fault.pointer) });
    },
  });
  for (const { pointer: at, message } of findCertainFaults(consumer, input.root, work)) {
    if (isTold(at, told)) continue;
    report({
      severity: 'error',
      code: 'input_invalid',
      pointer: place(at),
      message: `${consumer.name} does not take this: it ${message}`,
    });
  }
}

/** What is wrong whatever the expressions yield, and whichever of the specs is met. */
function findCertainFaults(
  { faultFinders }: Consumer,
  root: TemplateNode,
  work: Effort,
): readonly InputFault[] {
  const { value, holes } = readPartialValue(root);
  let first: readonly InputFault[] = [];
  for (const find of faultFinders) {
    const faults = find(value, holes, work);
    if (faults.length === 0) return [];
    if (first.length === 0) first = faults;
  }
  return first;
}

/** At the same place, around it or in it. */
function isTold(pointer: string, told: ReadonlySet<string>): boolean {
  return [...told].some(
    (other) => pointer === other || pointer.startsWith(`${other}/`) || other.startsWith(`${pointer}/`),
  );
}
