/** `aliases`: other names of the project for models, for programs that keep the names they know. */
import { ModelAlias, ModelAliasList } from '@capstan/core/contracts/model-alias';
import { jsonBody, path } from '../client/api-client.ts';
import { command, group, listed } from '../command.ts';
import { formatAge } from '../render/formats.ts';
import type { Columns } from '../render/print.ts';

const aliasTable: Columns<ModelAlias> = [
  ['ALIAS', 'name'],
  ['CAPABILITY', 'capability'],
  ['BY', 'set_by'],
  ['SINCE', ({ updated_at }, { now }) => formatAge(updated_at, now), 'right'],
];

const nameArgument = { '<name>': 'the name that programs use, such as gpt-4o' } as const;

export const registerAliasesCommand = group('aliases', 'other names of the project for models', [
  command('ls', {
    about: 'list the names and the capabilities that they lead to',
    example: 'capstan aliases',
    isDefault: true,
    call: ({ client }) => client.get('/v1/aliases', ModelAliasList),
    show: listed(aliasTable, { none: 'no aliases; set one with `capstan aliases set NAME CAPABILITY`' }),
  }),
  command('set', {
    about: 'let a name lead to a capability',
    example: 'capstan aliases set gpt-4o model.capable',
    args: { ...nameArgument, '<capability>': 'model.NAME or embed.NAME' },
    call: ({ client }, { name, capability }) =>
      client.put(path`/v1/aliases/${name}`, ModelAlias, jsonBody({ capability })),
    show: ({ name, capability }, { print }) => print.line(`${name} is ${capability}`),
  }),
  command('rm', {
    about: 'remove a name',
    example: 'capstan aliases rm gpt-4o',
    args: nameArgument,
    call: ({ client }, { name }) => client.remove(path`/v1/aliases/${name}`),
    show: (_, { print }, { name }) => print.line(`${name} is no alias any more`),
  }),
]);
