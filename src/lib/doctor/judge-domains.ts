// The certificates of the domains that an edge serves. Pure.
import { type Finding, failure, listNames, warning } from './finding.ts';

export type ServedDomain = { domain: string } & (
  | { kind: 'valid'; from: Date; to: Date }
  | { kind: 'none'; cause: string }
  | { kind: 'never'; reason: string }
);

const dayMs = 24 * 60 * 60_000;
/** Caddy renews when a third of a certificate's time is left: with a week left of three months something keeps it from it. */
const lateMs = 7 * dayMs;
const latePart = 6;

const journal = "journalctl -u caddy --since -1d -o cat | grep 'could not get certificate'";

/** None where all have one that will be good for a while. */
export function judgeDomains(domains: readonly ServedDomain[], now: Date): Finding[] {
  const causes = groupBy(domains, (one) => (one.kind === 'none' ? one.cause : undefined));
  const reasons = groupBy(domains, (one) => (one.kind === 'never' ? one.reason : undefined));
  return [
    ...[...causes].map(([cause, names]) =>
      failure(`no certificate for ${listNames(names)}: ${cause}`, { fix: journal }),
    ),
    ...[...reasons].map(([reason, names]) =>
      failure(`no certificate for ${listNames(names)}: ${reason}`, {
        fix: 'set cluster.caddy.issuer, or deploy each name by itself',
      }),
    ),
    ...domains.flatMap((one) => judgeValidity(one, now)),
  ];
}

function judgeValidity(one: ServedDomain, now: Date): Finding[] {
  if (one.kind !== 'valid') return [];
  const { domain, from, to } = one;
  const leftMs = to.getTime() - now.getTime();
  const isLate = leftMs < Math.min(lateMs, (to.getTime() - from.getTime()) / latePart);
  if (!isLate) return [];
  if (leftMs <= 0)
    return [failure(`the certificate of ${domain} has ended at ${to.toISOString()}`, { fix: journal })];
  return [
    warning(`the certificate of ${domain} ends at ${to.toISOString()}, and Caddy has not renewed it`, {
      fix: journal,
    }),
  ];
}

/** Names by what is said of them. */
function groupBy(
  domains: readonly ServedDomain[],
  tell: (one: ServedDomain) => string | undefined,
): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const one of domains) {
    const told = tell(one);
    if (told !== undefined) groups.set(told, [...(groups.get(told) ?? []), one.domain]);
  }
  return groups;
}
