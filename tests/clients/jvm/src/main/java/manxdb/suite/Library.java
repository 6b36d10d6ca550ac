package manxdb.suite;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Column;
import jakarta.persistence.ElementCollection;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Inheritance;
import jakarta.persistence.InheritanceType;
import jakarta.persistence.Lob;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.OneToMany;
import jakarta.persistence.Table;
import jakarta.persistence.Version;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.type.SqlTypes;

/** Entities that use what applications use: relations, inheritance, versions, most types. */
final class Library {
    static final Class<?>[] ENTITIES = {
        Writer.class, Work.class, Genre.class, Payment.class, CardPayment.class, CashPayment.class
    };

    private Library() {}

    enum Mood { CALM, WILD }

    @Entity(name = "Writer")
    @Table(name = "writer")
    static class Writer {
        @Id
        @GeneratedValue(strategy = GenerationType.IDENTITY)
        Long id;

        @Version
        int version;

        @Column(nullable = false, length = 80)
        String name;

        @Column(unique = true)
        String email;

        boolean living;
        LocalDate born;
        Instant seen;
        BigDecimal debt;
        double rating;
        UUID token;

        @Enumerated(EnumType.STRING)
        Mood mood;

        @Enumerated
        Mood place;

        @Lob
        byte[] portrait;

        @Lob
        String biography;

        @JdbcTypeCode(SqlTypes.JSON)
        Map<String, String> links = new HashMap<>();

        @ElementCollection
        Set<String> tags = new HashSet<>();

        @OneToMany(mappedBy = "writer", cascade = CascadeType.ALL, orphanRemoval = true)
        List<Work> works = new ArrayList<>();
    }

    @Entity(name = "Work")
    @Table(name = "work")
    static class Work {
        @Id
        @GeneratedValue(strategy = GenerationType.SEQUENCE)
        Integer id;

        String title;
        int pages;

        @ManyToOne(fetch = FetchType.LAZY, optional = false)
        Writer writer;

        @ManyToMany
        Set<Genre> genres = new HashSet<>();
    }

    @Entity(name = "Genre")
    @Table(name = "genre")
    static class Genre {
        @Id
        @GeneratedValue(strategy = GenerationType.UUID)
        String id;

        String label;
    }

    @Entity(name = "Payment")
    @Inheritance(strategy = InheritanceType.JOINED)
    static class Payment {
        @Id
        @GeneratedValue(strategy = GenerationType.TABLE)
        Long id;

        BigDecimal amount;
    }

    @Entity(name = "CardPayment")
    static class CardPayment extends Payment {
        String number;
    }

    @Entity(name = "CashPayment")
    static class CashPayment extends Payment {
        String currency;
    }
}
