import { describe, expect, it } from 'vitest';
import { localAddress, readSettings, readSharedWith } from '../src/settings.ts';

describe('readSettings', () => {
  it('has safe defaults, and takes empty variables as absent', () => {
    expect(readSettings({ ROUTER_URL: '', PORT: '', UNRELATED: 'x' })).toEqual({
      HOST: '127.0.0.1',
      MEDIA_URL: 'file://.capstan/media',
    });
  });

  it.each([
    ['a port that is none', { PORT: '70000' }, /PORT/],
    [
      'a router without a token',
      { ROUTER_URL: 'http://router' },
      /^settings of the capability: ROUTER_TOKEN: needed because ROUTER_URL is set$/,
    ],
    ['a router address that is none', { ROUTER_URL: 'router:80', ROUTER_TOKEN: 't' }, /ROUTER_URL/],
    [
      'every address, but none to register',
      { ROUTER_URL: 'http://router', ROUTER_TOKEN: 't', HOST: '0.0.0.0' },
      /ADVERTISE_URL/,
    ],
  ])('refuses %s by name', (_name, environment, message) => {
    expect(() => readSettings(environment)).toThrow(message);
  });
});

it.each([
  ['127.0.0.1', 'http://127.0.0.1:81'],
  ['0.0.0.0', 'http://127.0.0.1:81'],
  ['::', 'http://127.0.0.1:81'],
  ['::1', 'http://[::1]:81'],
  ['10.1.2.3', 'http://10.1.2.3:81'],
])('a server on %s is reached at %s', (host, address) => {
  expect(localAddress(host, 81)).toBe(address);
});

it.each([
  ['all', 'all'],
  ['prj_a,all', 'all'],
  ['prj_a,prj_b', ['prj_a', 'prj_b']],
  [' prj_a ,\n\tprj_b ', ['prj_a', 'prj_b']],
  ['none', []],
  ['none prj_a', ['prj_a']],
  ['', undefined],
  [' , ', undefined],
  [undefined, undefined],
])('SHARED_WITH %j is %j', (text, sharedWith) => {
  expect(readSharedWith(text)).toEqual(sharedWith);
});
