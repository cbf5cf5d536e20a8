/** `capstan move`: takes the data folder of a stopped stack into an outer Postgres, media store and Temporal. */
import type { StoppedStack } from '../../dev/stopped-stack.ts';
import type { MoveOptions, WholeMove } from '../../processes/upkeep/move.ts';
import { dataFolder } from '../client/connection.ts';
import { local, usually } from '../command.ts';
import { exitCodes, UsageError } from '../errors.ts';
import { formatBytes } from '../render/formats.ts';
import { createPrinter } from '../render/print.ts';
import type { Shell } from '../shell.ts';
import { describeMoved, describeRecovery, isWhole, withSettings } from './programs.ts';

type Tables = WholeMove['tables'];

function describeTables(tables: Tables): string[] {
  const filled = tables.filter(({ rows }) => rows > 0);
  const rows = filled.reduce((sum, table) => sum + table.rows, 0);
  return [
    `copied and compared: ${rows} rows of ${filled.length} tables; the other ${tables.length - filled.length} are empty`,
  ];
}

function describeMedia({ copied, bytes, kept }: NonNullable<WholeMove['media']>): string {
  const there = kept === 0 ? '' : `; ${kept} existed already`;
  return `files copied: ${copied}, ${formatBytes(bytes)}${there}`;
}

/** The last lines: which parts of the folder still matter. */
function describeRest({ dataDir, keyFile, mediaUrl }: StoppedStack, hasKeys: boolean): string[] {
  return [
    ...(mediaUrl === null ? ['the stack kept its files elsewhere: give the servers the same MEDIA_URL'] : []),
    ...(keyFile === null ? [] : [`API keys work as before, such as the one in ${keyFile}`]),
    ...(hasKeys ? ['give servers and workers the same PAYLOAD_KEYS'] : []),
    `${dataDir} is unchanged. Do not start a stack on it again: it would carry out the open runs a second time`,
  ];
}

/** @throws UsageError in one line: the stack runs, or its Postgres does not start */
async function openStack(data: string | undefined, { environment }: Shell, remark: (line: string) => void) {
  const { openStoppedStack } = await import('../../dev/stopped-stack.ts');
  const report = ({ part, status, detail }: { part: string; status: string; detail: string }): void => {
    if (status === 'note' || status === 'failed') remark(`${part}: ${detail}`);
  };
  return openStoppedStack({ dataDir: dataFolder(data, environment), environment, report }).catch(
    (thrown: unknown) => {
      throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown));
    },
  );
}

export const registerMoveCommand = local('move', {
  about:
    'copy the data folder of a stopped `capstan dev` into DATABASE_URL and MEDIA_URL, and start its open runs in the Temporal of the settings; the folder stays as it is',
  options: {
    '--data <dir>': 'folder that keeps all data (default: CAPSTAN_DATA, else .capstan)',
    '--env-file <file>': 'variables of the servers, for what the environment leaves open',
    '--json': usually('print the result as JSON at the end; progress goes to stderr', false),
  },
  run: async ({ data, envFile, json }, shell) => {
    const { moveInstallation } = await import('../../processes/upkeep/move.ts');
    const print = createPrinter(shell);
    const say = json ? print.remark : print.line;
    await withSettings(envFile, shell, async (settings) => {
      const stack = await openStack(data, shell, print.remark);
      const options: MoveOptions = {
        hasMediaUrl: (shell.environment.MEDIA_URL ?? '') !== '',
        onMedia: (media) => say(describeMedia(media)),
        onTable: ({ table, rows }) => say(`  ${table.padEnd(20)} ${rows} rows`),
        onCopied: (tables) => describeTables(tables).forEach(say),
        onFound: (found) => describeMoved(found).forEach(say),
      };
      try {
        say(`from ${stack.dataDir}, Postgres ${stack.postgresVersion}`);
        const moved = await moveInstallation(settings, stack, options);
        print.lines(json ? [JSON.stringify(moved)] : describeRecovery(moved.recovery));
        if (!json) print.lines(describeRest(stack, settings.PAYLOAD_KEYS !== undefined));
        if (!isWhole(moved.recovery)) shell.exitWith(exitCodes.failed);
      } finally {
        await stack.close();
      }
    });
  },
});
