/** The commands and files of docs/production.md, with the addresses and folders of a trial on this machine. */
import { listCodeBlocks } from '../../test/docs/documents.ts';

/** Of the machines on the page; each has a loopback address of its own, so that the page's ports stay. */
export const addresses = {
  proxy: '127.0.0.10',
  machines: ['127.0.0.11', '127.0.0.12'],
  postgres: '127.0.0.20',
  nodes: ['127.0.0.31', '127.0.0.32'],
  capability: '127.0.0.21',
} as const;
export const password = 'trial';

const replacements: readonly (readonly [RegExp, string])[] = [
  [/10\.0\.0\.0\/8/g, '127.0.0.0/8'],
  [/10\.0\.0\.(\d+)/g, '127.0.0.$1'],
  [/bind :443/g, `bind ${addresses.proxy}:443`],
  [/\?sslmode=verify-full/g, ''],
  [/db\.internal/g, addresses.postgres],
  [/temporal\.internal|capstan\.example\.com/g, addresses.proxy],
  [/DNS:127/g, 'IP:127'],
  [/…/g, password],
  [/runuser -u capstan -- /g, ''],
  [/ -o [a-z]+ -g [a-z]+/g, ''],
  [/\/usr\/bin\/node(?= )/g, process.execPath],
];

/** @param root takes the place of the machine's own root folder */
export function createPage(root: string) {
  const blocks = listCodeBlocks('docs/production.md').map(({ text }) => text);
  const translate = (text: string): string =>
    replacements
      .reduce((changed, [pattern, value]) => changed.replace(pattern, value), text)
      .replace(/(?<![\w.])\/(?=(?:opt|etc|srv|root|var|usr\/local)\/)/g, `${root}/`);
  /** @throws Error when the page has no such block */
  const block = (mark: string): string => {
    const found = blocks.find((text) => text.includes(mark));
    if (found === undefined) throw new Error(`docs/production.md has no block with "${mark}"`);
    return translate(found);
  };
  /** The lines of a block that begin with one of the words. @throws Error when there are none */
  const lines = (mark: string, begin: RegExp): string => {
    const found = block(mark)
      .split('\n')
      .filter((line) => begin.test(line));
    if (found.length === 0) throw new Error(`the block "${mark}" of docs/production.md has no line ${begin}`);
    return found.join('\n');
  };
  /** The variables of a file that the page shows; a block may show two. */
  const variables = (path: string): Record<string, string> => {
    const [, after = ''] = block(`# ${path}\n`.replace(/^# \//, '# /')).split(`# ${translate(path)}\n`);
    const [own = ''] = after.split(/^# /m);
    return Object.fromEntries(
      [...own.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = '', value = '']) => [name, value]),
    );
  };
  /** The command of a unit that the page shows. */
  const execStart = (mark: string): string => {
    const [, command] = /^ExecStart=(.*)$/m.exec(block(mark)) ?? [];
    if (command === undefined) throw new Error(`the unit "${mark}" of docs/production.md has no ExecStart`);
    return command;
  };
  return { block, lines, variables, execStart };
}
