/** The file by which commands find a running stack, for a Capstan of a test. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StackFile } from '@capstan/core/contracts/stack';
import type { SharedCapstan } from './shared-capstan.ts';

/** @param folder of the commands */
export async function writeStackFile(folder: string, capstan: SharedCapstan): Promise<void> {
  const stack: StackFile = {
    api_url: capstan.url,
    api_key: capstan.key,
    media_url: capstan.mediaUrl,
    project_id: capstan.projectId,
    console_url: `${capstan.url}/ui/`,
    temporal_address: '',
    temporal_ui_url: null,
    database_url: capstan.databaseUrl,
    pids: {},
  };
  await mkdir(join(folder, '.capstan'));
  await writeFile(join(folder, '.capstan', 'stack.json'), JSON.stringify(stack));
}
