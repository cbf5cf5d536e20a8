import { findOwnListeners } from '@capstan/guarded-dial/address-policy';
import { describe, expect, it } from 'vitest';
import { normaliseEndpoint } from '../../../src/use-cases/registry/addresses.ts';
import { aPolicy } from '../../support/address-policy.ts';

const own = { ownListeners: findOwnListeners(['http://capstan.internal:7400', 'http://127.0.0.1:7400']) };
const production = { allowsLoopback: false };

describe('normaliseEndpoint', () => {
  it.each([
    ['http://2852039166', {}, '169.254.169.254 is a link-local address'],
    ['http://0xa9fea9fe/', {}, '169.254.169.254 is a link-local address'],
    ['http://0251.0376.0251.0376', {}, '169.254.169.254 is a link-local address'],
    ['http://169.254.43518', {}, '169.254.169.254 is a link-local address'],
    ['http://[::ffff:169.254.169.254]', {}, 'is a link-local address'],
    ['http://[64:ff9b::169.254.169.254]', {}, 'is a link-local address'],
    ['http://[fd00:ec2::254]', {}, "is a cloud provider's metadata address"],
    ['http://8.8.8.8', {}, '8.8.8.8 is outside ALLOWED_CIDRS (10.0.0.0/8,'],
    ['http://127.1', production, '127.0.0.1 is a loopback address'],
    ['http://localhost:9000', production, 'localhost is a loopback address'],
    ['http://a.LOCALHOST', production, 'a.localhost is a loopback address'],
    ['http://127.0.0.1:7400', own, "Capstan's own"],
    ['http://Capstan.internal:7400', own, "Capstan's own"],
  ])('refuses %s at once and shows the value', (endpoint, options, reason) => {
    const ctx = { policy: aPolicy(options) };
    expect(() => normaliseEndpoint(ctx, endpoint)).toThrow(reason);
    expect(() => normaliseEndpoint(ctx, endpoint)).toThrow(/^endpoint is not allowed/);
  });

  it.each([
    ['HTTP://Concat.Internal:80/base/', {}, 'http://concat.internal/base'],
    ['http://localhost:9000', {}, 'http://localhost:9000'],
    ['http://127.0.0.1:9000', { ...production, allowedCidrs: '127.0.0.0/8' }, 'http://127.0.0.1:9000'],
    ['http://localhost', { ...production, allowedCidrs: '127.0.0.0/8' }, 'http://localhost'],
    ['https://8.8.8.8/', { allowedCidrs: '0.0.0.0/0' }, 'https://8.8.8.8'],
  ])('takes %s, a name without asking a name server', (endpoint, options, normalised) => {
    expect(normaliseEndpoint({ policy: aPolicy(options) }, endpoint)).toBe(normalised);
  });
});
