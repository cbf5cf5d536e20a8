/** The server's checks, with the known live capabilities. */

import { openDefinition } from '@capstan/core/definitions/read-definition';
import { factsOfMocks } from '@capstan/core/mock-run/prepare-run';
import { finish } from '@capstan/core/pieces';
import { toGraph } from '../graph/definition-graph.ts';
import type { CheckedText, LiveSpecs } from './messages.ts';

export function checkText(text: string, specs: LiveSpecs): CheckedText {
  const facts = { ...factsOfMocks({ capabilities: specs }, []), strict: false };
  const opened = openDefinition({ text, contentType: null });
  const { definition, findings } = finish(opened.check(facts));
  const graph = definition === null ? null : toGraph(definition);
  return { text, isReadable: opened.definition !== null, findings, definition, graph };
}
