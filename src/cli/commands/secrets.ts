/** `secrets`: values that steps name and instances receive. A value comes from stdin or a file, never from an argument. */
import { Secret, SecretList } from '@capstan/core/contracts/secret';
import { jsonBody, path } from '../client/api-client.ts';
import { command, group, listed, parsed, required, usually } from '../command.ts';
import { collectText, readSource } from '../input/arguments.ts';
import { formatAge } from '../render/formats.ts';
import type { Columns } from '../render/print.ts';

const secretTable: Columns<Secret> = [
  ['SECRET', 'name'],
  ['VERSION', ({ version }) => String(version), 'right'],
  ['CAPABILITIES', ({ capabilities }) => capabilities.join(' '), 'shrinks'],
  ['HOSTS', ({ hosts }) => hosts.join(' '), 'shrinks'],
  ['BY', 'set_by'],
  ['SET', ({ set_at }, { now }) => formatAge(set_at, now), 'right'],
  [
    'USED',
    ({ last_used_at }, { now }) => (last_used_at === null ? '' : formatAge(last_used_at, now)),
    'right',
  ],
];

const nameArgument = { '<name>': 'as steps name it: {{ secrets.NAME }}' } as const;

export const registerSecretsCommand = group('secrets', 'secrets of the project, for the inputs of steps', [
  command('ls', {
    about: 'list the secrets, without their values',
    example: 'capstan secrets ls',
    isDefault: true,
    call: ({ client }) => client.get('/v1/secrets', SecretList),
    show: listed(secretTable, { none: 'no secrets; set one with `capstan secrets set NAME`' }),
  }),
  command('set', {
    about: 'set a secret to the text of stdin or of a file, without the line break at its end',
    example: "capstan secrets set web-token --capability 'publish.*' < token.txt",
    args: nameArgument,
    options: {
      '-c, --capability <name>': required(
        parsed('a capability whose steps may name it, or PREFIX* (repeatable)', collectText),
      ),
      '--host <host>': parsed(
        'a host whose instances receive it: HOST, HOST:PORT or *.DOMAIN (repeatable; default: the instances of this project)',
        collectText,
      ),
      '-f, --file <file>': usually('the file that holds the value; - is stdin', '-'),
    },
    call: async ({ client, shell }, { name, capability: capabilities, host: hosts = [], file }) => {
      const { text } = await readSource(file, shell.stdin);
      const value = text.replace(/\r?\n$/, '');
      return client.put(path`/v1/secrets/${name}`, Secret, jsonBody({ value, capabilities, hosts }));
    },
    show: ({ name, version }, { print }) => print.line(`${name} is set, version ${version}`),
  }),
  command('delete', {
    about: 'delete a secret; steps that name it fail from then on',
    example: 'capstan secrets delete web-token',
    args: nameArgument,
    call: ({ client }, { name }) => client.remove(path`/v1/secrets/${name}`),
    show: (_, { print }, { name }) => print.line(`${name} is deleted`),
  }),
]);
