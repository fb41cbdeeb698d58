// What an edge would refuse, told before it is deployed, and what to write instead. Stricter than what a node takes from the
// store: that has been accepted once.
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';
import type { Problem } from '../cluster/rules.ts';
import type { DesiredService } from '../cluster/wire.ts';
import { isRoutable } from '../edge/route.ts';
import { isProbePath } from '../edge/shard.ts';

type Served = Pick<DesiredService, 'ingress' | 'healthCheck'>;

/** The only ones that are told for these two fields. */
export function findIngressProblems({ ingress, healthCheck }: Served): Problem[] {
  const problems: Problem[] = [];
  if (ingress !== null && (!isRoutable(ingress.domain.toLowerCase()) || isIP(ingress.domain) !== 0)) {
    const message = `${quote(ingress.domain)} is no domain name${hintFor(ingress.domain)}`;
    problems.push({ path: ['ingress', 'domain'], message });
  }
  if (healthCheck !== null && !isProbePath(healthCheck.path)) {
    const message = `${quote(healthCheck.path)} is no path of a URL`;
    problems.push({ path: ['healthCheck', 'path'], message });
  }
  return problems;
}

export function isIngressField({ path }: Problem): boolean {
  return ['ingress.domain', 'healthCheck.path'].includes(path.join('.'));
}

/** Empty where nothing is known. */
function hintFor(domain: string): string {
  if (isIP(domain.replace(/^\[|\]$/g, '')) !== 0) return ': it is an address';
  if (/[/:]/.test(domain)) return ': only the name, without https:// or port';
  if (domain.endsWith('.')) return ': without the dot at its end';
  if (domain.replace(/^\*\./, '').includes('*')) return ': a wildcard is one "*." in front';
  const ascii = domainToASCII(domain);
  return /[^\0-\x7f]/.test(domain) && ascii !== '' && isRoutable(ascii) ? `: write it as ${ascii}` : '';
}

function quote(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}...` : text);
}
