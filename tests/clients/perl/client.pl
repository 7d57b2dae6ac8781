#!/usr/bin/perl
# Net::Stomp against a broker: perl client.pl PORT VERSION PLACE
# Prints "ok CHECK" or "failed CHECK: why" for each check, each on addresses below PLACE.
# The library sends no heart-beats and escapes no headers.
use strict;
use warnings;
use utf8;
use Encode qw(encode);
use Net::Stomp;

my ( $port, $version, $place ) = @ARGV;
my $wait_s  = 15;
my $numbers = 0;
my $every_byte = join( '', map { chr } 0 .. 255 ) x 3;
$| = 1;

sub equal {
    my ( $seen, $expected, $what ) = @_;
    die "$what: '$seen' instead of '$expected'\n" if $seen ne $expected;
}

sub connected {
    my $session = Net::Stomp->new( { hostname => '127.0.0.1', port => $port, timeout => $wait_s } );
    my $greeting = $session->connect( { 'accept-version' => $version, host => 'broker' } );
    die "no CONNECTED\n" unless $greeting && $greeting->command eq 'CONNECTED';
    $session->{greeting} = $greeting->headers;
    $session->{kept}     = [];
    return $session;
}

sub next_frame {
    my ($session) = @_;
    return $session->receive_frame( { timeout => $wait_s } ) // die "nothing came\n";
}

# A frame with a receipt; messages that come before the receipt are kept.
sub ask {
    my ( $session, $command, $headers, $body ) = @_;
    my $receipt = 'receipt-' . ++$numbers;
    my %headers = ( %$headers, receipt => $receipt );
    $headers{bytes_message} = 1 if defined $body;
    $session->send_frame( Net::Stomp::Frame->new( { command => $command, headers => \%headers, body => $body } ) );
    while (1) {
        my $frame = next_frame($session);
        if ( $frame->command eq 'MESSAGE' ) { push @{ $session->{kept} }, $frame; next }
        equal( $frame->command, 'RECEIPT', $command );
        equal( $frame->headers->{'receipt-id'}, $receipt, $command );
        return;
    }
}

sub message {
    my ($session) = @_;
    return shift @{ $session->{kept} } if @{ $session->{kept} };
    my $frame = next_frame($session);
    equal( $frame->command, 'MESSAGE', 'frame' );
    return $frame;
}

sub nothing_waits {
    my ($session) = @_;
    ask( $session, 'SEND', { destination => "/topic/$place.nobody" }, 'x' );
    die 'unexpected message ' . $session->{kept}[0]->body . "\n" if @{ $session->{kept} };
}

sub subscribe {
    my ( $session, $destination, $ack ) = @_;
    ask( $session, 'SUBSCRIBE', { id => '1', destination => $destination, ack => $ack, 'consumer-window-size' => -1 } );
}

# What the version asks for in ACK and NACK, beside the message-id, which the library adds.
sub settling {
    my ( $frame, %more ) = @_;
    my $headers = $frame->headers;
    return { frame => $frame, %more } if $version eq '1.0';
    return { frame => $frame, subscription => $headers->{subscription}, %more } if $version eq '1.1';
    return { frame => $frame, id => $headers->{ack}, %more };
}

sub filled {
    my ( $name, @bodies ) = @_;
    my $session     = connected();
    my $destination = "/queue/$place.$name";
    ask( $session, 'SEND', { destination => $destination }, $_ ) for @bodies;
    return ( $session, $destination );
}

sub left {
    my ( $destination, @bodies ) = @_;
    my $session = connected();
    subscribe( $session, $destination, 'client-individual' );
    for my $body (@bodies) {
        my $message = message($session);
        equal( $message->body, $body, 'left' );
        $session->ack( settling($message) );
    }
    nothing_waits($session);
    leave($session);
}

sub leave {
    my ($session) = @_;
    ask( $session, 'DISCONNECT', {} );
    die "something came after the receipt of DISCONNECT\n" if $session->receive_frame( { timeout => $wait_s } );
}

my %checks = (
    connects => sub {
        my $session = connected();
        equal( $session->{greeting}{version}, $version, 'version' );
        die "no session\n" unless length $session->session_id;
        leave($session);
    },

    sends_and_receives_in_order => sub {
        my ( $session, $destination ) = filled('order');
        subscribe( $session, $destination, 'auto' );
        for my $n ( 0 .. 49 ) {
            my $is_sent = $session->send_with_receipt( { destination => $destination, body => "message $n", n => $n } );
            push @{ $session->{kept} }, $session->receive_frame( { timeout => $wait_s } );
            die "message $n has no receipt\n" unless $is_sent;
        }
        for my $n ( 0 .. 49 ) {
            my $message = message($session);
            equal( $message->body, "message $n", 'body' );
            equal( $message->headers->{n}, $n, 'header' );
        }
        leave($session);
    },

    acknowledges_all_before => sub {
        my ( $session, $destination ) = filled( 'client', qw(a b c) );
        subscribe( $session, $destination, 'client' );
        my @messages = map { message($session) } 1 .. 3;
        $session->ack( settling( $messages[1] ) );
        leave($session);
        left( $destination, 'c' );
    },

    acknowledges_one => sub {
        my ( $session, $destination ) = filled( 'individual', qw(a b c) );
        subscribe( $session, $destination, 'client-individual' );
        my @messages = map { message($session) } 1 .. 3;
        $session->ack( settling( $messages[1] ) );
        leave($session);
        left( $destination, qw(a c) );
    },

    refuses => sub {
        my ( $session, $destination ) = filled( 'nack', 'x' );
        subscribe( $session, $destination, 'client-individual' );
        $session->nack( settling( message($session) ) );
        my $again = message($session);
        equal( $again->headers->{redelivered}, 'true', 'redelivered' );
        $session->ack( settling($again) );
        leave($session);
        left($destination);
    },

    is_redelivered_after_a_lost_connection => sub {
        my ( $session, $destination ) = filled( 'lost', 'x' );
        subscribe( $session, $destination, 'client-individual' );
        message($session);
        close $session->socket;
        my $heir = connected();
        subscribe( $heir, $destination, 'client-individual' );
        my $again = message($heir);
        equal( $again->headers->{redelivered}, 'true', 'redelivered' );
        $heir->ack( settling($again) );
        leave($heir);
    },

    commits_and_aborts => sub {
        my ( $session, $destination ) = filled('transaction');
        subscribe( $session, $destination, 'client-individual' );
        ask( $session, 'BEGIN', { transaction => 'undone' } );
        ask( $session, 'SEND', { destination => $destination, transaction => 'undone' }, 'never' );
        ask( $session, 'ABORT', { transaction => 'undone' } );
        my $producer = connected();
        $producer->send_transactional( { destination => $destination, body => 'whole' } ) or die "not committed\n";
        my $message = message($session);
        equal( $message->body, 'whole', 'body' );
        $session->ack( settling($message) );
        nothing_waits($session);
        leave($_) for $producer, $session;
    },

    acknowledges_in_a_transaction => sub {
        my ( $session, $destination ) = filled( 'transacted-ack', 'x' );
        subscribe( $session, $destination, 'client-individual' );
        ask( $session, 'BEGIN', { transaction => 'undone' } );
        $session->ack( settling( message($session), transaction => 'undone' ) );
        ask( $session, 'ABORT', { transaction => 'undone' } );
        my $again = message($session);
        equal( $again->headers->{redelivered}, 'true', 'redelivered' );
        ask( $session, 'BEGIN', { transaction => 'done' } );
        $session->ack( settling( $again, transaction => 'done' ) );
        ask( $session, 'COMMIT', { transaction => 'done' } );
        leave($session);
        left($destination);
    },

    unsubscribes => sub {
        my ( $session, $destination ) = filled('unsubscribe');
        subscribe( $session, $destination, 'auto' );
        ask( $session, 'SEND', { destination => $destination }, 'one' );
        equal( message($session)->body, 'one', 'body' );
        ask( $session, 'UNSUBSCRIBE', { id => '1' } );
        ask( $session, 'SEND', { destination => $destination }, 'two' );
        nothing_waits($session);
        leave($session);
        left( $destination, 'two' );
    },

    disconnects_with_a_receipt => sub {
        my $session = connected();
        leave($session);
    },

    carries_bytes => sub {
        my ( $session, $destination ) = filled( 'bytes', $every_byte, "\0", encode( 'UTF-8', 'Ж 東京 🎈' ) );
        subscribe( $session, $destination, 'auto' );
        equal( message($session)->body, $_, 'body' ) for $every_byte, "\0", encode( 'UTF-8', 'Ж 東京 🎈' );
        leave($session);
    },

    carries_awkward_headers => sub {
        my ( $session, $destination ) = filled('headers');
        my $awkward = encode( 'UTF-8', $version eq '1.0' ? 'Ж:東京🎈 \\ \\n' : 'Ж 東京🎈' );
        subscribe( $session, $destination, 'auto' );
        ask( $session, 'SEND', { destination => $destination, awkward => $awkward, empty => '' }, 'x' );
        my $headers = message($session)->headers;
        equal( $headers->{awkward}, $awkward, 'header' );
        equal( $headers->{empty}, '', 'empty header' );
        leave($session);
    },

    hears_of_errors => sub {
        my $session = connected();
        $session->send( { destination => "/queue/$place.errors", body => 'x', priority => 'high', receipt => 'wrong' } );
        my $error = next_frame($session);
        equal( $error->command, 'ERROR', 'frame' );
        equal( $error->headers->{'receipt-id'}, 'wrong', 'receipt-id' );
        die 'message ' . $error->headers->{message} . "\n" unless $error->headers->{message} =~ /priority/;
        return leave($session) unless $version eq '1.2';
        die "something came after the ERROR\n" if $session->receive_frame( { timeout => $wait_s } );
    },
);

delete $checks{refuses} if $version eq '1.0';
for my $name ( sort keys %checks ) {
    eval { $checks{$name}->(); 1 } and print "ok $name\n" and next;
    ( my $why = $@ || 'unknown' ) =~ s/\n/ | /g;
    print "failed $name: $why\n";
}
