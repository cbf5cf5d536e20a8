import { describe, expect, it } from 'vitest';
import { aPolicy } from '../../../test/support/address-policy.ts';
import { findOwnListeners } from '../src/address-policy.ts';

const everything = { allowedCidrs: '0.0.0.0/0,::/0' };

describe('findFault', () => {
  it.each([
    '10.1.2.3',
    '172.31.255.255',
    '192.168.0.1',
    '100.64.0.1',
    'fd12::1',
    '::ffff:10.0.0.1',
    '127.0.0.1',
    '::1',
  ])('allows %s in development', (address) => {
    expect(aPolicy().findFault(address, 80)).toBeNull();
  });

  it.each(['8.8.8.8', '172.32.0.1', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::808:808'])(
    'refuses %s unless public networks are allowed, and lists the allowed ones',
    (address) => {
      expect(aPolicy().findFault(address, 80)).toContain(`${address} is outside ALLOWED_CIDRS (10.0.0.0/8,`);
      expect(aPolicy(everything).findFault(address, 80)).toBeNull();
    },
  );

  it.each([
    ['169.254.169.254', 'link-local'],
    ['::ffff:169.254.169.254', 'link-local'],
    ['::ffff:a9fe:a9fe', 'link-local'],
    ['0:0:0:0:0:ffff:169.254.169.254', 'link-local'],
    ['64:ff9b::169.254.169.254', 'link-local'],
    ['64:ff9b::a9fe:a9fe', 'link-local'],
    ['fe80::1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['64:ff9b::', 'unspecified'],
    ['64:ff9b::1', 'unspecified'],
    ['::', 'unspecified'],
    ['::ffff:0.0.0.0', 'unspecified'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'multicast'],
    ['ff02::1', 'multicast'],
    ['100.100.100.200', 'metadata'],
    ['::ffff:100.100.100.200', 'metadata'],
    ['fd00:ec2::254', 'metadata'],
    ['fd20:ce::254', 'metadata'],
    ['fd00:c1::a9fe:a9fe', 'metadata'],
    ['::169.254.169.254', 'stands for another'],
    ['2002:a9fe:a9fe::1', 'stands for another'],
    ['64:ff9b:1::a9fe:a9fe', 'stands for another'],
  ])('refuses %s even where everything is allowed: %s', (address, what) => {
    const policy = aPolicy({ allowedCidrs: `${everything.allowedCidrs},169.254.0.0/16,fe80::/10` });
    expect(policy.findFault(address, 80)).toContain(what);
  });

  it.each(['127.0.0.1', '127.8.9.10', '::1', '::ffff:127.0.0.1', '64:ff9b::7f00:1'])(
    'refuses %s in production, unless loopback itself is named',
    (address) => {
      const production = { allowsLoopback: false };
      expect(aPolicy(production).findFault(address, 80)).toContain('loopback');
      expect(aPolicy({ ...production, ...everything }).findFault(address, 80)).toContain('loopback');
      const named = aPolicy({ ...production, allowedCidrs: '127.0.0.0/8,::1/128' });
      expect(named.findFault(address, 80)).toBeNull();
    },
  );

  it('does not let ::/0 stand for IPv4', () => {
    expect(aPolicy({ allowedCidrs: '::/0' }).findFault('8.8.8.8', 80)).toContain('outside');
    expect(aPolicy({ allowedCidrs: '::/0' }).findFault('::ffff:8.8.8.8', 80)).toContain('outside');
  });

  it('refuses the ports of Capstan itself, on every address of a wildcard', () => {
    const ownListeners = findOwnListeners([
      'postgres://capstan:secret@10.0.0.5/capstan',
      'temporal://[::1]:7233',
      'http://0.0.0.0:7400',
      'postgres:///capstan?host=/var/run/postgresql',
      undefined,
    ]);
    const policy = aPolicy({ ownListeners });
    const refused = ['10.0.0.5:5432', '::ffff:10.0.0.5:5432', '::1:7233', '127.0.0.1:7400', '::1:7400'];
    const allowed = ['10.0.0.5:5433', '10.0.0.6:5432', '127.0.0.1:7233', '10.0.0.5:7400', '127.0.0.1:7401'];
    const judge = (places: readonly string[]) =>
      places.map((place) => {
        const [, address = '', port] = /^(.*):(\d+)$/.exec(place) ?? [];
        return policy.findFault(address, Number(port));
      });
    expect(judge(refused)).toEqual(refused.map((place) => `${place} is Capstan's own`));
    expect(judge(allowed)).toEqual(allowed.map(() => null));
  });
});
