/** Addresses as development mode allows them: private networks and loopback. */
import { type AddressPolicyOptions, createAddressPolicy } from '@capstan/guarded-dial/address-policy';
import { createDialGuard, type Resolve } from '@capstan/guarded-dial/guarded-dial';

export function aPolicy(options: Partial<AddressPolicyOptions> = {}) {
  return createAddressPolicy({
    allowedCidrs: '10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,fc00::/7',
    allowsLoopback: true,
    ownListeners: [],
    ...options,
  });
}

export function aGuard(options: Partial<AddressPolicyOptions> = {}, resolve?: Resolve) {
  return createDialGuard(aPolicy(options), resolve);
}
