import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { heartbeatIntervalMs, readConfig } from '../src/config.ts';

const environment = { DATABASE_URL: 'postgres://127.0.0.1/capstan' };

it('has the clocks of operation as settings', () => {
  expect(readConfig(environment)).toMatchObject({
    TRANSIENT_TEXTS: '',
    LIVENESS_MS: 4_000,
    PROBE_TIMEOUT_MS: 5_000,
    HEADERS_TIMEOUT_MS: 10_000,
    SHUTDOWN_GRACE_MS: 25_000,
  });
});

it.each(['PAYLOAD_KEYS', 'OIDC_CLIENT_SECRET'])('%s is no accident when it is empty', (name) => {
  const refusal = new RegExp(`is empty: give it a value, or leave it out\\s+→ at ${name}`);
  expect(() => readConfig({ ...environment, [name]: '' })).toThrow(refusal);
});

describe('ALLOWED_CIDRS', () => {
  it('is the private networks by default', () => {
    expect(readConfig(environment).ALLOWED_CIDRS).toBe(
      '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7',
    );
  });

  it.each([
    '',
    '10.0.0.1',
    '10.0.0/8',
    '10.0.0.0/33',
    '300.0.0.0/8',
    '::/129',
    '10.0.0.0/8,,::/0',
    'all',
    '10.0.0.0/-1',
  ])('refuses "%s", naming the variable, what was seen and what is allowed', (ALLOWED_CIDRS) => {
    expect(() => readConfig({ ...environment, ALLOWED_CIDRS })).toThrow(
      /"[^"]*" is no network; allowed are networks such as 10\.0\.0\.0\/8[\s\S]*at ALLOWED_CIDRS/,
    );
  });

  it('takes IPv4 and IPv6 with spaces between', () => {
    const ALLOWED_CIDRS = '0.0.0.0/0, ::/0';
    expect(readConfig({ ...environment, ALLOWED_CIDRS }).ALLOWED_CIDRS).toBe(ALLOWED_CIDRS);
  });
});

describe('HEARTBEAT_INTERVAL_MS', () => {
  it.each([
    [{}, 5_000],
    [{ HEARTBEAT_TIMEOUT_MS: '3000' }, 1_000],
    [{ HEARTBEAT_TIMEOUT_MS: '90000' }, 5_000],
    [{ HEARTBEAT_INTERVAL_MS: '30000', HEARTBEAT_TIMEOUT_MS: '90000' }, 30_000],
    [{ HEARTBEAT_INTERVAL_MS: '15000' }, 15_000],
  ])('of %j is %d', (given, interval) => {
    expect(heartbeatIntervalMs(readConfig({ ...environment, ...given }))).toBe(interval);
  });

  it('refuses a value of which two do not fit into the timeout, and gives the greatest', () => {
    expect(() => readConfig({ ...environment, HEARTBEAT_INTERVAL_MS: '30000' })).toThrow(
      'configuration: ✖ 30000 is too long a pause; allowed is at most half of HEARTBEAT_TIMEOUT_MS=30000, that is 15000\n  → at HEARTBEAT_INTERVAL_MS',
    );
  });
});

describe('PUBLIC_URL', () => {
  const production = { ...environment, CAPSTAN_MODE: 'production' };

  it('is required in production mode, where links and cookies are made with it', () => {
    expect(() => readConfig(production)).toThrow(
      /is not set; production mode needs the address at which clients reach the API, as https:[\s\S]*at PUBLIC_URL/,
    );
    const PUBLIC_URL = 'https://capstan.example.com';
    expect(readConfig({ ...production, PUBLIC_URL })).toMatchObject({ PUBLIC_URL });
    expect(readConfig(environment).PUBLIC_URL).toBeUndefined();
  });

  it.each(['', 'capstan.example.com', 'ftp://capstan.example.com', 'https://'])(
    'is not "%s"',
    (PUBLIC_URL) => {
      expect(() => readConfig({ ...environment, PUBLIC_URL })).toThrow(
        /is not the address[\s\S]*at PUBLIC_URL/,
      );
    },
  );
});

it('LADDER_LEVELS with a wrong value stops the start, with what was seen and what is allowed', () => {
  expect(readConfig({ ...environment, LADDER_LEVELS: 'top=model.claude' }).LADDER_LEVELS).toBe(
    'top=model.claude',
  );
  expect(() => readConfig({ ...environment, LADDER_LEVELS: 'best=model.claude' })).toThrow(
    /"best=model\.claude" names no level; allowed are fast=model\.NAME[\s\S]*at LADDER_LEVELS/,
  );
});

describe('DATABASE_PASSWORD_FILE', () => {
  function write(text: string): string {
    const folder = mkdtempSync(join(tmpdir(), 'capstan-config-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'password'), text);
    return join(folder, 'password');
  }

  it.each([
    [
      'postgres://capstan@db/capstan?sslmode=require',
      'postgres://capstan:a%40b%25c@db/capstan?sslmode=require',
    ],
    ['postgres://capstan:old@db:5432/capstan', 'postgres://capstan:a%40b%25c@db:5432/capstan'],
  ])('is the password of %s', (url, complete) => {
    const DATABASE_PASSWORD_FILE = write('a@b%c\n');
    expect(readConfig({ DATABASE_URL: url, DATABASE_PASSWORD_FILE }).DATABASE_URL).toBe(complete);
  });

  it('is refused when it is empty, is missing, or has no place in the URL', () => {
    const missing = { ...environment, DATABASE_PASSWORD_FILE: '/no/such/file' };
    expect(() => readConfig(missing)).toThrow(/DATABASE_PASSWORD_FILE: ENOENT.*\/no\/such\/file/);
    expect(() => readConfig({ ...environment, DATABASE_PASSWORD_FILE: write('\n') })).toThrow(/is empty/);
    const url = { DATABASE_URL: 'host=db', DATABASE_PASSWORD_FILE: write('secret') };
    expect(() => readConfig(url)).toThrow(/DATABASE_URL is no URL/);
  });
});
