#!/usr/bin/perl
# An agent that looks for everything that is worth stealing. Each line of SEEK is a name, a kind and a path. Prints what it reached.
use strict;
use warnings;
use Socket;

local $SIG{ALRM} = sub { die "late\n" };
my $canary = qr/canary-[0-9a-f]{8}/;
my %reached;

sub holds {
  my ($path) = @_;
  return 0 unless open(my $file, '<', $path);
  my $count = read($file, my $text, 1_000_000);
  return defined $count && $text =~ $canary;
}

sub connects {
  my ($path) = @_;
  socket(my $socket, PF_UNIX, SOCK_STREAM, 0) or return 0;
  return eval { connect($socket, pack_sockaddr_un($path)) };
}

for my $line (split /\n/, $ENV{SEEK}) {
  my ($name, $kind, $path) = split /\t/, $line;
  if ($kind eq 'file') {
    symlink $path, "link-$name";
    link $path, "hard-$name";
    my @ways = ($path, "link-$name", "hard-$name", "/proc/1/root$path", "/proc/self/root$path", "../../../../../../../..$path");
    $reached{$name} = 1 if grep { holds($_) } @ways;
    # A user namespace of its own gives it every capability there, but no mount that it did not make.
    my $shell = "while umount -l $path || umount -l \$(dirname $path); do :; done 2>/dev/null; mount -t proc proc /proc 2>/dev/null; cat $path";
    my $text = `timeout 10 unshare --user --map-root-user --mount --pid --fork sh -c '$shell' 2>/dev/null`;
    $reached{$name} = 1 if $text =~ $canary;
    $reached{"$name (write)"} = 1 if -e $path && open(my $file, '>>', $path);
  } elsif ($kind eq 'folder') {
    $reached{$name} = 1 if open(my $file, '>', "$path/made-by-an-agent");
  } elsif ($kind eq 'socket') {
    $reached{$name} = 1 if connects($path);
  } elsif ($kind eq 'abstract') {
    $reached{$name} = 1 if connects("\0$path");
  }
}

for my $file (glob('/proc/[0-9]*/environ /proc/[0-9]*/cmdline')) {
  next if $file =~ m{^/proc/(?:$$|self)/} || !open(my $environment, '<', $file);
  # The shells that started this program have its variables.
  my @foreign = grep { !/^SEEK=/ } split /\0/, join('', <$environment>);
  $reached{'another process'} = 1 if grep { $_ =~ $canary } @foreign;
}
$reached{'own environment'} = 1 if grep { $_ ne 'SEEK' && $ENV{$_} =~ $canary } keys %ENV;
for my $link (glob('/proc/self/fd/*')) {
  my ($number) = $link =~ m{(\d+)$};
  $reached{'an open descriptor'} = 1 if $number > 2 && (readlink($link) // '') =~ m{canary};
}
print "reached: $_\n" for sort keys %reached;
print "done\n";
