package sshx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// certificate is an OpenSSH user certificate, with its file for messages.
type certificate struct {
	cert  *ssh.Certificate
	label string
}

// certificates reads those that the Config or ssh_config names. That of the Config must be readable; others
// are an offer.
func (ids *identities) certificates(config Config, found settings, names tokens) ([]certificate, error) {
	var all []certificate
	if config.CertificateFile != "" {
		path, err := expand(config.CertificateFile)
		if err != nil {
			return nil, &keyProblem{BadCertificate, err}
		}
		cert, err := readCertificate(path)
		if err != nil {
			return nil, &keyProblem{BadCertificate, err}
		}
		all = append(all, certificate{cert, config.CertificateFile})
	}
	for _, file := range found.certificateFiles {
		path, err := names.expand(file, true)
		if err == nil {
			var cert *ssh.Certificate
			if cert, err = readCertificate(path); err == nil {
				all = append(all, certificate{cert, file})
			}
		}
		if err != nil {
			ids.pass(fmt.Sprintf("certificate %s skipped: %v", file, err), err)
		}
	}
	return all, nil
}

func readCertificate(path string) (*ssh.Certificate, error) {
	content, err := readFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	cert, ok := parsePublic(content).(*ssh.Certificate)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is no OpenSSH certificate: ssh-keygen -s makes one, by default in a file that ends with -cert.pub", path)
	case cert.CertType != ssh.UserCert:
		return nil, fmt.Errorf("%s is a host's certificate, not a user's", path)
	}
	return cert, nil
}

func isCertified(offer identity) bool {
	_, ok := offer.signer.PublicKey().(*ssh.Certificate)
	return ok
}

// certificateFault says what is wrong with an offered certificate, after the host has refused it: until
// then the host's clock and its rules on principals count, which we do not know.
func certificateFault(offers []identity, user string, now time.Time) error {
	var faults []error
	for _, offer := range offers {
		cert, ok := offer.signer.PublicKey().(*ssh.Certificate)
		if !ok {
			continue
		}
		seconds := uint64(max(now.Unix(), 0))
		switch {
		case cert.ValidBefore != ssh.CertTimeInfinity && seconds >= cert.ValidBefore:
			faults = append(faults, fmt.Errorf("the %s expired at %s", offer.label, moment(cert.ValidBefore)))
		case seconds < cert.ValidAfter:
			faults = append(faults, fmt.Errorf("the %s is valid only from %s on", offer.label, moment(cert.ValidAfter)))
		case len(cert.ValidPrincipals) > 0 && !slices.Contains(cert.ValidPrincipals, user):
			faults = append(faults, fmt.Errorf("the %s is for the users %s, not for %q", offer.label, strings.Join(cert.ValidPrincipals, ", "), user))
		}
	}
	return errors.Join(faults...)
}

func moment(seconds uint64) string {
	return time.Unix(int64(min(seconds, 1<<40)), 0).UTC().Format(time.RFC3339)
}
