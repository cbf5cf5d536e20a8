import type { TxtNode } from '@textlint/ast-node-types';
import { TextlintKernel, type TextlintKernelRule } from '@textlint/kernel';
import markdown from '@textlint/textlint-plugin-markdown';
import type { Violation } from '../structure/source.ts';
import { type Block, type Measure, measure, readBlocks } from './blocks.ts';
import { readSubject, rules } from './rules.ts';

export interface LintedPage extends Measure {
  readonly file: string;
  readonly findings: readonly Violation[];
}

const kernel = new TextlintKernel();
/** The default of a CommonJS module is all of it to Node, and its own default to vitest. */
const plugin = 'default' in markdown ? markdown.default : markdown;

function gather(blocks: Block[]): TextlintKernelRule['rule'] {
  const visit = (node: TxtNode): void => {
    blocks.push(...readBlocks(node));
  };
  return () => ({ Header: visit, Paragraph: visit, TableCell: visit, CodeBlock: visit });
}

export async function lintPage(file: string, text: string): Promise<LintedPage> {
  const blocks: Block[] = [];
  const { messages } = await kernel.lintText(text, {
    filePath: file,
    ext: '.md',
    plugins: [{ pluginId: 'markdown', plugin }],
    rules: [...rules, { ruleId: 'measure', rule: gather(blocks) }],
  });
  const findings = messages.map(({ ruleId, message, loc }) => ({
    rule: ruleId,
    subject: `${file} ${readSubject(message)}`,
    message: `${file}:${loc.start.line} ${ruleId} ${message}`,
  }));
  return { file, findings, ...measure(blocks) };
}
